"""tenacity's strategies in a policy, and a policy's rules as tenacity's strategies.

A strategy says after which failed attempt how long to wait (``wait``), and after which none follows (``stop``). Of
tenacity only these are used, which are functions of a state; its clock, its sleep and its threads are in its `Retrying`
and `RetryCallState`, of which none is made here.
"""
