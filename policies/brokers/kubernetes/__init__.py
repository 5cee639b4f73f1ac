"""Artemis on Kubernetes: the custom resources of its operator, which it merges into the image's own configuration.

The rules are Artemis'. `documents` finds the resources in a file of many, `names` has their fields by version, `image`
has what the image brings and how ``applyRule`` merges, and `reader`, `writer` and `conversion` are of the resources.
"""
