"""Whatever the sources came as, zip archives and clones without links too, the same files are installed."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BACKEND = "import sys; sys.path.insert(0, 'scripts'); import build_backend as b; print(b.{call}({folder!r}))"
USE = """
import importlib.util, pathlib, pkgutil, redelivery, redelivery.client.ledger, pyspark_redelivery
with redelivery.connect("vm://anywhere") as connection, connection.session() as session:
    session.producer("orders").send("the moon")
    print(session.consumer("orders").receive(timeout=5).body)
specs = importlib.util.find_spec("redelivery.testing.brokers.specs")  # to import it needs tenacity
print(pathlib.Path(specs.origin).with_name("HornetQ.java").is_file())
print(*(each.name for each in pkgutil.iter_modules() if each.name.startswith("pyspark_")))  # so does Spark
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True, timeout=110)  # noqa: S603  # our own commands
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    return [Path(name) for name in names if (ROOT / name).is_symlink() or (ROOT / name).exists()]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files as they are now, committed or not."""
    root = tmp_path_factory.mktemp("sources") / "repository"
    for name in tracked():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            (root / name).symlink_to((ROOT / name).readlink())
        else:
            (root / name).write_bytes((ROOT / name).read_bytes())
    run("git", "init", "--quiet", cwd=root)
    run("git", "add", "--all", cwd=root)
    run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=all", cwd=root)
    return root


def expected(repository: Path) -> set[str]:
    """Every file of a room, and of the packages below src, by the path it is installed under."""
    wanted = {".py", ".java", ".typed"}
    rooms = sorted(path.name for path in (repository / "src" / "redelivery").iterdir() if path.is_symlink())
    assert len(rooms) >= 8
    in_rooms = {
        f"redelivery/{path.relative_to(repository)}"
        for room in rooms
        for path in (repository / room).rglob("*")
        if path.suffix in wanted or path.parent.name in ("static", "templates")
    }
    in_src = {
        str(path.relative_to(repository / "src")) for path in (repository / "src").rglob("*") if path.suffix in wanted
    }
    return in_rooms | in_src


def wheel_of(source: Path | str, folder: Path) -> Path:
    """The wheel that pip builds of ``source``, without looking for anything on an index."""
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        folder,
        str(source),
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def archived(form: str) -> Callable[[Path, Path], Path]:
    def archive(repository: Path, folder: Path) -> Path:
        path = folder / f"redelivery.{form}"
        run("git", "archive", f"--format={form}", "--prefix=redelivery-main/", "--output", path, "HEAD", cwd=repository)
        return path

    return archive


def sdist(repository: Path, folder: Path) -> Path:
    return (
        folder
        / run(
            sys.executable, "-c", BACKEND.format(call="build_sdist", folder=str(folder)), cwd=repository
        ).splitlines()[-1]
    )


def without_links(repository: Path, folder: Path) -> Path:
    run("git", "clone", "--quiet", "-c", "core.symlinks=false", repository, folder / "clone")
    assert (folder / "clone" / "src" / "redelivery" / "client").read_text(encoding="utf-8") == "../../client"
    return folder / "clone"


FORMS: dict[str, Callable[[Path, Path], Path | str]] = {
    "folder": lambda repository, _: repository,
    "zip": archived("zip"),
    "tar.gz": archived("tar.gz"),
    "git": lambda repository, _: f"git+file://{repository}",
    "sdist": sdist,
    "core.symlinks=false": without_links,
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "form", [pytest.param(each, marks=pytest.mark.long_form if each != "zip" else ()) for each in FORMS]
)
def test_every_file_is_in_the_wheel_whatever_the_sources_came_as(form: str, repository: Path, tmp_path: Path) -> None:
    (tmp_path / "wheel").mkdir()
    assert files_of(wheel_of(FORMS[form](repository, tmp_path), tmp_path / "wheel")) == expected(repository)


@pytest.mark.timeout(120)
@pytest.mark.long_form
@pytest.mark.parametrize("links", [True, False], ids=["links", "core.symlinks=false"])
@pytest.mark.parametrize("editable", [True, False], ids=["editable", "wheel"])
def test_what_was_installed_works(editable: bool, links: bool, repository: Path, tmp_path: Path) -> None:
    source = repository if links else without_links(repository, tmp_path)
    (tmp_path / "wheel").mkdir()
    if editable:
        code = BACKEND.format(call="build_editable", folder=str(tmp_path / "wheel"))
        wheel = tmp_path / "wheel" / run(sys.executable, "-c", code, cwd=source).splitlines()[-1]
    else:
        wheel = wheel_of(source, tmp_path / "wheel")
    venv.create(tmp_path / "venv", symlinks=True)
    there = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", there, "install", "--quiet", "--no-deps", "--no-index", wheel)
    assert run(there, "-I", "-c", USE, cwd=tmp_path).split("\n") == ["the moon", "True", "pyspark_redelivery", ""]
    location = run(there, "-I", "-c", "import redelivery.client; print(redelivery.client.__file__)", cwd=tmp_path)
    assert location.startswith(str(source if editable else tmp_path / "venv"))
    run(sys.executable, "-m", "pip", "--python", there, "uninstall", "--quiet", "--yes", "redelivery")
    assert [each.name for each in tmp_path.glob("venv/lib/*/site-packages/*redelivery*")] == []
