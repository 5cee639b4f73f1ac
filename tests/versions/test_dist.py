"""scripts/dist: what is released is whole and the same bytes twice, and what is wrong is said in one line."""

from __future__ import annotations

import base64
import hashlib
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from redelivery.model.version import VERSION

pytest.importorskip("build", reason="the extra dev")
ROOT = Path(__file__).parents[2]
COMMIT = ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=all")


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True, timeout=600)  # noqa: S603  # our own commands
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the packages as they are now, committed or not."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    root = tmp_path_factory.mktemp("sources") / "repository"
    for name in run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines():
        source, copy = ROOT / name, root / name
        if name.split("/")[0] in ("tests", "docs", "benchmarks", "examples") or not (
            source.is_symlink() or source.exists()
        ):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            copy.symlink_to(source.readlink())
        else:
            copy.write_bytes(source.read_bytes())
            copy.chmod(source.stat().st_mode)
    run("git", "init", "--quiet", cwd=root)
    run("git", "add", "--all", cwd=root)
    run("git", *COMMIT, cwd=root)
    return root


@pytest.fixture(scope="module")
def made(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` makes, without the list of components and the installations."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "scripts/dist", "--no-install", "--outdir", folder, cwd=repository)
    return folder


@pytest.mark.timeout(600)
def test_the_archives_are_whole_and_named_by_their_checksums(made: Path) -> None:
    wheel, sdist = made / f"redelivery-{VERSION}-py3-none-any.whl", made / f"redelivery-{VERSION}.tar.gz"
    assert (made / "SHA256SUMS").read_text() == "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (wheel, sdist)
    )
    with zipfile.ZipFile(wheel) as opened:
        info = f"redelivery-{VERSION}.dist-info"
        metadata = opened.read(f"{info}/METADATA").decode()
        assert f"{info}/licenses/web/static/htmx.LICENSE.txt" in opened.namelist()
        assert {each.external_attr >> 16 for each in opened.infolist()} == {0o100644}
        assert len({each.date_time for each in opened.infolist()}) == 1
    for line in (f"Version: {VERSION}", "License-Expression: Apache-2.0 AND 0BSD", "Requires-Python: >=3.11"):
        assert f"\n{line}\n" in metadata
    assert "](docs/" not in metadata  # a package index does not have the files
    assert "The documentation: a first queue, the guide" in metadata
    digest = base64.urlsafe_b64encode(hashlib.sha256(metadata.encode()).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(wheel) as opened:
        assert f"\n{info}/METADATA,sha256={digest},{len(metadata.encode())}\n" in opened.read(f"{info}/RECORD").decode()
    with tarfile.open(sdist) as sources:
        assert _read(sources, f"redelivery-{VERSION}/PKG-INFO") == metadata
        names = {each.name.partition("/")[2] for each in sources}
        assert {(each.uid, each.gid, each.uname, each.issym()) for each in sources} == {(0, 0, "", False)}
    assert {"CHANGELOG.md", "LICENSE", "README.md", "scripts/build_backend.py", "web/static/htmx.min.js"} <= names


def _read(sources: tarfile.TarFile, name: str) -> str:
    file = sources.extractfile(name)
    assert file is not None
    return file.read().decode()


DESCRIBED = b"""Name: x
Version: 1.2
%b
See [the guide](docs/guide.md#top), [limits](#limits), ![a demo](docs/demo.svg) and [PyPI](https://pypi.org).

```python
print(handlers[0](message.txt))
```
"""
ADDRESS = b"https://example.org/shop"


def test_links_of_the_long_description_lead_somewhere_or_are_text() -> None:
    backend = runpy.run_path(str(ROOT / "scripts" / "build_backend.py"))
    text = backend["for_an_index"](DESCRIBED % b"").decode()
    assert "See the guide, limits,  and [PyPI](https://pypi.org)." in text
    assert "handlers[0](message.txt)" in text
    text = backend["for_an_index"](DESCRIBED % b"Project-URL: Source, %b\n" % ADDRESS).decode()
    assert "[the guide](https://example.org/shop/blob/v1.2/docs/guide.md#top), limits" in text
    assert "![a demo](https://example.org/shop/raw/v1.2/docs/demo.svg)" in text


@pytest.mark.timeout(600)
@pytest.mark.long_form
def test_a_clone_elsewhere_gives_the_same_bytes(repository: Path, made: Path, tmp_path: Path) -> None:
    run("git", "clone", "--quiet", repository, tmp_path / "another place", cwd=tmp_path)
    folder = tmp_path / "out"
    run(sys.executable, "scripts/dist", "--no-install", "--outdir", folder, cwd=tmp_path / "another place")
    assert (folder / "SHA256SUMS").read_text() == (made / "SHA256SUMS").read_text()


@pytest.mark.timeout(1800)
@pytest.mark.long_form
def test_it_installs_and_works_on_every_python_that_is_there(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py", reason="the extra dist")
    said = run(sys.executable, "scripts/dist", "--outdir", tmp_path, cwd=repository)
    assert f"redelivery {VERSION} works console otel yaml" in said
    assert (tmp_path / f"redelivery-{VERSION}.cdx.json").is_file()


def test_what_is_not_committed_is_refused(repository: Path, tmp_path: Path) -> None:
    (repository / "web" / "new.py").write_text("")
    try:
        said = run(sys.executable, "scripts/dist", "--no-install", "--outdir", tmp_path, cwd=repository, code=1)
    finally:
        (repository / "web" / "new.py").unlink()
    assert said.splitlines()[-1] == "== FAILED: not committed, so it would not be in the archives: web/new.py"


@pytest.fixture(scope="module")
def dist() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "dist"))


def test_this_version_has_its_section_in_the_changelog(dist: dict[str, Any]) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert dist["section"](VERSION, changelog)
    versions = re.findall(r"^## \[([\d.]+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.M)
    assert len(versions) == len(re.findall(r"^## ", changelog, re.M)) - changelog.count("\n## [Unreleased]\n")
    assert versions == sorted(versions, key=lambda each: [int(part) for part in each[0].split(".")], reverse=True)


@pytest.mark.parametrize(
    "changelog",
    [
        "",
        "## [Unreleased]\n\n- a\n",
        "## [0.2.0]\n\n- a\n",
        "## [0.2.0] - 2026-01-01\n\n## [0.1.0] - 2025-01-01\n\n- a\n",
    ],
    ids=["none", "unreleased", "undated", "empty"],
)
def test_a_version_without_a_section_is_refused(dist: dict[str, Any], changelog: str) -> None:
    with pytest.raises(dist["Wrong"], match=r"section .*0\.2\.0"):
        dist["section"]("0.2.0", changelog)


def test_a_file_that_is_not_the_same_twice_is_named(dist: dict[str, Any], tmp_path: Path) -> None:
    paths = []
    for name in "ab":
        paths.append(tmp_path / f"{name}.whl")
        with zipfile.ZipFile(paths[-1], "w") as wheel:
            wheel.writestr(zipfile.ZipInfo("same.py"), "1")
            wheel.writestr(zipfile.ZipInfo("other.py"), name)
    assert dist["difference"](*paths) == "other.py"


def test_the_vendored_script_is_a_component_of_its_version(dist: dict[str, Any]) -> None:
    found = dist["htmx"]()
    assert re.fullmatch(r"pkg:npm/htmx\.org@\d+\.\d+\.\d+", found["purl"])
