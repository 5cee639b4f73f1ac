"""Every Python block of the README and the site runs as written and prints what it says.

Nearly all run on the embedded broker. Those that need more say so (see snippets.py): a real broker, or TLS.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
from tests.examples import console, with_spark
from tests.examples.snippets import ROOT, Block, Section, sections
from tests.examples.tls_front import make_certificates, tls_front
from tests.promises.real import started

from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

GUIDE = tuple(sorted(f"docs/guide/{path.name}" for path in (ROOT / "docs" / "guide").glob("*.md")))
SPARK = ("docs/spark.md", *sorted(f"docs/spark/{path.name}" for path in (ROOT / "docs" / "spark").glob("*.md")))
FOLDERS = ("tutorials", "how-to", "explanation", "migrating", "reference")
SITE = (  # a page may be without a program here
    *sorted(f"docs/{folder}/{path.name}" for folder in FOLDERS for path in (ROOT / "docs" / folder).glob("*.md")),
    *("docs/comparison.md", "docs/faq.md", "docs/upgrading.md"),
)
PAGES = ("README.md", "docs/guide.md", *GUIDE, *SPARK, *SITE)
WITHOUT_PROGRAMS = (
    "guide/brokers",
    "guide/command-line",
    "guide/migrating",
    "spark/operating",
    "spark/options",
    "spark/performance",
    "spark/runbook",
    "spark/versions",
)
BROKERS = tuple(sorted(f"docs/brokers/{path.name}" for path in (ROOT / "docs" / "brokers").glob("*.md")))
SECTIONS = [section for page in PAGES for section in sections(page)]
_LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def named(section: Section) -> str:
    return f"{section.page}: {section.title}"


def not_spark(*needs: str) -> list[Section]:
    """Of those that need it; pytest's files that need nothing are run together."""
    found = [section for section in SECTIONS if not section.needs_spark and section.needs in needs]
    return [section for section in found if section.needs or not all(block.is_test for block in section.blocks)]


@pytest.mark.parametrize("section", not_spark(""), ids=named)
def test_section_runs_as_written(section: Section, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    play(section, capsys, tmp_path)


@pytest.mark.parametrize("section", not_spark("activemq", "artemis", "rabbitmq4"), ids=named)
def test_section_runs_on_its_broker(
    section: Section,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker: RealBroker = request.getfixturevalue(section.needs)
    there = {"stomp://localhost:61613": broker.stomp_url, "amqp://localhost:5672": broker.amqp_url}
    if section.needs == "rabbitmq4":
        pytest.importorskip("proton")
        ours = (broker.stomp_url, broker.amqp_url, broker.http_url)
        theirs = (
            "stomp://guest:guest@localhost:61613",
            "amqp://guest:guest@localhost:5672",
            "http://guest:guest@localhost:15672",
        )
        there = dict(zip(theirs, ours, strict=True))
    monkeypatch.setenv(f"REDELIVERY_{section.needs.upper()}_URL", ",".join(there.values()))  # for a page's own pytest
    play(section, capsys, tmp_path, there)


@pytest.mark.parametrize("section", not_spark("embedded"), ids=named)
def test_section_runs_on_an_embedded_broker(
    section: Section, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands for the one that the page has started in another terminal."""
    monkeypatch.setenv("REDELIVERY_RECEIPTS", str(tmp_path))
    with EmbeddedBroker("behind-a-page", stomp_port=0) as broker:
        host, port = broker.stomp_url.removeprefix("stomp://").split(":")
        there = {"stomp://localhost:61613": broker.stomp_url, '("localhost", 61613)': f'("{host}", {port})'}
        play(section, capsys, tmp_path, there)


@pytest.mark.together("Artemis with a file of its own")
@pytest.mark.timeout(150)
@pytest.mark.parametrize("section", not_spark("own-artemis"), ids=named)
def test_section_runs_on_an_artemis_with_the_file_that_it_made(
    section: Section, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Up to its first connection without a broker, which is started with its ``broker.xml`` then."""
    pytest.importorskip("proton")
    before = [each for each in section.blocks if "localhost:5672" not in each.code]
    play(replace(section, blocks=tuple(before)), capsys, tmp_path)
    made = (tmp_path / "broker.xml").read_text(encoding="utf-8")
    with started.running(started.ARTEMIS, lambda site: started.with_acceptors(made, site)) as broker:
        there = {"localhost:5672": f"{broker.host}:{broker.ports['amqp']}"}
        after = tuple(each for each in section.blocks if each not in before)
        play(replace(section, blocks=after), capsys, tmp_path, there)


@pytest.mark.parametrize("section", not_spark("tls"), ids=named)
def test_section_runs_over_tls(
    section: Section, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificates(tmp_path)
    monkeypatch.chdir(tmp_path)
    with EmbeddedBroker("behind-tls", stomp_port=0) as broker, tls_front(broker.stomp_url, tmp_path) as port:
        play(section, capsys, tmp_path, {"broker.example.org:61614": f"localhost:{port}"})


@pytest.mark.parametrize("section", not_spark("alone"), ids=named)
def test_section_runs_in_a_process_of_its_own(section: Section, tmp_path: Path) -> None:
    path = tmp_path / "section.py"
    path.write_text(section.program, encoding="utf-8")
    (block,) = section.blocks
    printed = with_spark.output(path)
    assert block.is_shown(printed), f"{block.page}:{block.line}: {printed} instead of {block.shown}"


def test_every_section_is_run_by_one_of_these_tests() -> None:
    run_here = {"", "activemq", "artemis", "embedded", "own-artemis", "rabbitmq4", "tls", "alone"}
    elsewhere = {"worker"}  # test_tutorials.py
    assert {section.needs for section in SECTIONS} <= run_here | elsewhere


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("docs/reference/")])  # signatures
def test_a_block_is_of_a_language_that_is_run_or_is_no_program_of_ours(page: str) -> None:
    fences = re.findall(r"^ *```(\S*)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) <= {"", "python", "console", "text", "java", "xml", "yaml", "dockerfile", "promql", "ini"}


@pytest.mark.parametrize("block", [b for s in SECTIONS for b in s.blocks if b.file], ids=lambda block: block.file)
def test_a_block_that_is_an_example_is_that_file(block: Block) -> None:
    assert block.file is not None
    assert block.code == (ROOT / block.file).read_text(encoding="utf-8")


def play(
    section: Section, capsys: pytest.CaptureFixture[str], folder: Path, there: dict[str, str] | None = None
) -> None:
    """Run its blocks in a folder of their own; what the page names stands for what is ``there``."""
    with chdir(folder):
        run(section, capsys, folder, there)


def run(
    section: Section, capsys: pytest.CaptureFixture[str], folder: Path, there: dict[str, str] | None = None
) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    environment: dict[str, str] = {}
    for block in section.blocks:
        if block.file:
            continue
        for name, url in (there or {}).items():
            block = replace(block, code=block.code.replace(name, url))
        if block.is_console:
            console.check(block, environment)
            continue
        if block.is_test:
            if section.needs:
                passes(folder, block.code)
            continue
        block.run(namespace)
        printed = capsys.readouterr().out.splitlines()
        assert block.is_shown(printed), f"{block.page}:{block.line}: {printed} instead of {block.shown}"


@pytest.mark.timeout(with_spark.SECONDS)
@pytest.mark.parametrize(
    "section",
    [
        pytest.param(each, id=named(each), marks=() if each.title == "Quick start" else pytest.mark.long_form)
        for each in SECTIONS
        if each.needs_spark
    ],
)
def test_section_with_spark_runs_as_written(section: Section, output: Callable[..., list[str]], tmp_path: Path) -> None:
    path = tmp_path / "section.py"
    path.write_text(section.program, encoding="utf-8")
    assert output(path) == [shown for block in section.blocks for shown in block.shown]


def test_the_test_files_of_all_pages_pass(tmp_path: Path) -> None:
    """All in one run of pytest, which takes longer to start than they take."""
    files = [block.code for section in SECTIONS for block in section.blocks if block.is_test and not section.needs]
    passes(tmp_path, *files)


def passes(folder: Path, *files: str) -> None:
    """Blocks that are test files: pytest runs them by itself."""
    for number, code in enumerate(files):
        (folder / f"test_block_{number}.py").write_text(code, encoding="utf-8")
    run = subprocess.run(  # noqa: S603  # our own page
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(folder)],
        capture_output=True,
        text=True,
        timeout=150,
        cwd=folder,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"\d+ passed", run.stdout), run.stdout


@pytest.mark.parametrize(
    "page",
    [
        *PAGES,
        *BROKERS,
        "docs/index.md",
        "docs/promises.md",
        "docs/spark-design.md",
        "examples/README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "DESIGN.md",
    ],
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    missing = [
        f"{name}#{anchor}"
        for name, anchor in _LINK.findall(path.read_text(encoding="utf-8"))
        if not leads_somewhere(path.parent / name if name else path, anchor)
    ]
    assert missing == []


def leads_somewhere(target: Path, anchor: str) -> bool:
    """Whether the file exists and, where an anchor is given, has a heading of that name."""
    if not target.exists() or not anchor:
        return target.exists()
    headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_pages_have_sections_to_run() -> None:
    without = {f"docs/{name}.md" for name in WITHOUT_PROGRAMS}
    assert {section.page for section in SECTIONS} - set(SITE) == set(PAGES) - set(SITE) - without


@pytest.mark.parametrize("page", SPARK)
def test_a_page_of_spark_is_short(page: str) -> None:
    """Half of what the one page had that they were, 31,400 characters."""
    assert len((ROOT / page).read_text(encoding="utf-8")) <= 15_700


def test_the_readme_is_short() -> None:
    (first,) = next(section for section in SECTIONS if section.page == "README.md").blocks
    assert len(first.code.splitlines()) <= 20
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110
