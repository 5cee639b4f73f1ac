"""The site: the Markdown of this repository as it stands, by `make docs`.

Its root is the repository, so that a link leads where it leads on GitHub too: to a page, or to a file of the sources.
"""

import runpy
from pathlib import Path

HOME = Path(__file__).parents[1]

project = "redelivery"
release = runpy.run_path(str(HOME / "model" / "version.py"))["VERSION"]
copyright = "the authors of redelivery, Apache-2.0"

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
include_patterns = ["*.md", "docs/**.md", "tests/README.md", "examples/README.md"]
exclude_patterns = ["src", "build", "dist", ".*"]
root_doc = "docs/index"
myst_heading_anchors = 4  # named as GitHub names them
myst_fence_as_directive = ["mermaid"]

highlight_language = "none"  # a block that names no language is what one types into a shell

html_theme = "furo"
html_title = f"redelivery {release}"
html_extra_path = ["site/index.html"]  # of the root
html_static_path = ["site/site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
