"""The site: the Markdown of this repository as it stands, by `make docs`.

Its root is the repository, so that a link leads where it leads on GitHub too: to a page, or to a file of the sources.
A page loads nothing from another host: the build fails where one does.
"""

import hashlib
import re
import runpy
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

HOME = Path(__file__).parents[1]

project = "redelivery"
release = runpy.run_path(str(HOME / "model" / "version.py"))["VERSION"]
copyright = "the authors of redelivery, Apache-2.0"

extensions = ["myst_parser"]
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

# A name in code, or one that leads somewhere, and where it may break: within a path, at a hump, never within a word.
NAMES = re.compile(r'((?:<a [^>]*>|<span class="(?:pre|doc std std-doc|std std-ref|xref myst)">))([^<]+)')
JOINTS = re.compile(r"(?<=\w)(?=[.(\[])|(?<=[_/=,:?-])(?=\w)|(?<=[a-z])(?=[A-Z])")
# What a browser fetches without being asked to.
FETCHED = re.compile(
    r"""<(?:script|link|img|iframe|source|object|embed)\b[^>]*?\b(?:src|href|data)=["']((?:https?:)?//[^"']+)"""
    r"""|\bimport\b[^<;]*?["']((?:https?:)?//[^"']+)"""
)


class Mermaid(SphinxDirective):
    """A diagram, as scripts/mermaid-pictures drew it. GitHub draws it itself."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The picture of this text."""
        name = hashlib.sha256("\n".join(self.content).encode()).hexdigest()[:12]
        picture = f"/docs/images/mermaid/{name}.svg"
        if not (HOME / picture[1:]).exists():
            raise self.error("this diagram has no picture: run scripts/mermaid-pictures")
        return [nodes.image(uri=picture, alt="a diagram; its text is in the source of this page", classes=["mermaid"])]


def joints(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: nodes.document | None) -> None:
    """Mark in each name where a line may end, so that a narrow table need not break a word."""
    if "body" in context:
        context["body"] = NAMES.sub(lambda found: found[1] + JOINTS.sub("<wbr>", found[2]), context["body"])


def at_home(app: Sphinx, error: Exception | None) -> None:
    """Refuse pages that make a browser fetch something from another host."""
    if error is None:
        pages = Path(app.outdir).rglob("*.html")
        found = {f"{page.relative_to(app.outdir)}": FETCHED.search(page.read_text(encoding="utf-8")) for page in pages}
        if strangers := {page: url[1] or url[2] for page, url in found.items() if url is not None}:
            raise ExtensionError(f"loaded from another host: {strangers}")


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_directive("mermaid", Mermaid)
    app.connect("html-page-context", joints)
    app.connect("build-finished", at_home)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
