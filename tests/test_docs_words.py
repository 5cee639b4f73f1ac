"""Documents and code use the field's words and plain English; every public error is in the catalogue."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from redelivery.model import errors

ROOT = Path(__file__).parents[1]
GENERATED = {
    "benchmarks.md",
    "conformance.md",
    "cpu.md",
    "faults.md",
    "load.md",
    "selectors.md",
    "soak.md",
    "spark-faults.md",
    "traces.md",
}  # by scripts, from runs
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "DESIGN.md")]
    + [
        path
        for folder in ("guide", "brokers", "spark", "tutorials", "how-to", "explanation", "migrating", "reference")
        for path in (ROOT / "docs" / folder).glob("*.md")
    ]
    + [path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED]
)
FOLDERS = sorted(
    path.name
    for path in ROOT.iterdir()
    if path.is_dir() and path.name != "build" and any(path.rglob("*.py")) and not path.name.startswith(".")
)
TESTS = sorted(f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.rglob("*.py")))

# Docstrings begin with a subject or a verb, so that nobody has to guess what "it" is.
ROOMS = sorted(path.name for path in (ROOT / "src" / "redelivery").iterdir() if (ROOT / path.name).is_dir())
WITHOUT_SUBJECT = re.compile(r"(What|Whether|Where|When|Which|Whose|Who|How|It|They|Its|Their|Those)\b")
BEGINS_SO = re.compile(rf"""["'][\s\\]*{WITHOUT_SUBJECT.pattern}""")
PROSE = re.compile(
    r"""#[^\n]*|(?:\b[rbfuRBFU]{1,2})?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL,
)

# What is wrong → what to write. Only what is wrong wherever it stands.
WORDS = {
    r"\bstations?\b": "consumer",
    r"\btidings\b": "notifications",
    r"\bhanded out\b": "dispatched, delivered",
    r"\b(given|gives?|gave|giving) ((it|them|its messages|all|everything|what it has) )?back\b": "released",
    r"\bput aside\b": "parked",
    r"\bstand-in\b": "",
    r"\b(comes?|came|coming) again\b": "is redelivered",
    r"\bfeatures R\d": "JMS 3.1 and its section, or class and method",
    r"\bas often as a policy says\b": "up to a limit",
    r"\bminus that client's faults\b": "without its known bugs",
    r"\bthe pain it ends\b": "why",
    r"\bin earnest\b": "in production",
    r"\bis found out from\b": "is detected from",
    r"\belsewhere as the next one\b": "on other brokers: as …",
    r"\bsurely has\b": "is known to have",
    r"\bcannot settle\b": "cannot acknowledge",
    r"\bit happened or it did not\b|\bit has the message or it has not\b": "it may or may not have happened",
    r"\bas precious as\b": "back it up with …",
    r"\bthat are no rows\b": "that cannot become rows",
    r"\bthat is no row\b": "that cannot become a row",
    r"(?<!there )\bis no (body|option|duration|(whole )?number|count|name|port|delay|row|text|kind)\b": "is not a …",
    r"(?<!there )\bis no (destination|key|pattern|JMS value)\b": "is not a …",
    r"\bno known option\b": "unknown option",
    r"\b(an?|of) (plain )?text\b(?! (of|editor|file|body|message|or|and))": "str",
    r"\bwhoever\b": "name the subject",
    r"\bbehind your back\b": "by itself",
    r"\btold of\b": "notified of",
    r"\btell(s|ing)? (it(?! to\b)|its|them|others|of|an? (observer|store|session)"
    r"|the (peer|client|broker|transport|engine|session|application|outcome|exception listener))\b": "notify, say",
    r"\b(what|which) (a|an|the) (\w+ )?(engine|broker|transport|channel|session|ledger) tells\b": "notifies",
    r"\btold (its|to the|by the)\b": "notified",
    r"\b(is|are|be|been) told\b(?! (apart|otherwise|to|with|from))": "is notified, has its answer",
    r"\b(the|its) books\b": "the ledger",
    r"\bconversations?\b": "channel, session",
    r"\bbury\b|\bburied\b": "dead-letter",
    r"\bmended\b": "fixed",
    r"\bdiary\b|\bfirst-hour\b": "",
}

# The same, of sentences that need their context; the CHANGELOG is a record, and may have them.
SENTENCES = {
    r"\bit was long enough\b": "Ask again after `patience` seconds.",
    r'(?<=")it is gone\.': "The message was discarded.",
    r"\bwhat is in hand\b": "the messages being handled",
    r"\bthe same is there for\b": "The same functions are available from Python",
    r"\bby chance\b": "randomly",
    r"\baway, for good\b": "permanently",
    r"\bthe broker's again\b": "goes back to the broker (and is not counted)",
    r"\b(is|are) dialled again\b": "the library reconnects",
    r"\bas far as is known\b": "",
    r"\buse a whole number\b": "must be an integer",
}

# Words that no name in the code has, alone or as a part (`stand_in`, `DoorLink`) → what to call it.
PARTS = {
    "station": "consumer_state",
    "tidings": "notifications",
    "tell": "notify",
    "tells": "notifies, logs",
    "told": "notified",
    "conversation": "context, session",
    "talk": "session",
    "talking": "session",
    "stand_in": "read_on_behalf",
    "press_on": "flush_blocking",
    "crowd": "blocked_senders",
    "bell": "self_pipe",
    "rope": "self_pipe",
    "door": "listener, server",
    "greeting": "sasl",
    "stir": "mark_ready",
    "stirred": "ready",
    "pump": "flush",
    "bury": "dead_letter",
    "buried": "dead_lettered",
    "intake": "batch_receiver",
    "wishes": "lane_control",
    "books": "ledger",
    "lazy": "batched",
    "aside": "superseded, parked",
    "withholds": "acks_deferred",
    "overflows": "needs_extra_subscription",
    "borrowed": "unowned",
    "hand_out": "dispatched",
    "handed_out": "dispatched",
    "given_back": "released",
    "gives_back": "releases",
    "give_back": "release",
    "hungry": "starved",
}
# The same, of names as a whole: elsewhere these words are the field's or Python's.
NAMES = {
    **dict.fromkeys(("Sorting", "Holding", "Acknowledging", "Redelivering"), "Ledger"),
    "Wanted": "SourceRequest",
    "met": "parse_source",
    "agree": "confirm_source",
    "Unit": "OpenTransaction",
    "Units": "OpenTransactions",
    "Show": "BrowseSubscription",
    "Unseen": "NullEvents",
    "Arrivals": "BrowserEvents",
    "Fill": "ReceivedBatch",
    "Doubt": "UncommittedIds",
    "look": "poll_once",
    "over": "closed, ended or expired",
    "Shown": "RedeliveredIds",
    "Marking": "MarksRedelivered",
    "irregular": "needs_check",
    "doomed": "rollback_only",
    "UnownedConnection": "WeakConnectionEvents",
}


@cache
def any_of(*words: str) -> re.Pattern[str]:
    """One pattern of many, each of which begins with a word; for text in lower case."""
    begun = "|".join(word.removeprefix(r"\b") for word in words)
    return re.compile(rf"\b(?:{begun.lower()})")


def wrong_words(text: str, words: dict[str, str] | None = None) -> list[str]:
    text = re.sub(r"`[^`]*`", "``", text)  # names and messages stand as they are
    text = re.sub(r"\s+", " ", text)
    words = words or {**WORDS, **SENTENCES}
    if any_of(*words).search(text.lower()) is None:  # four times as fast as one after the other
        return []
    return [
        f"…{text[max(0, hit.start() - 30) : hit.end() + 30]}… (better: {better or 'nothing'})"
        for word, better in words.items()
        for hit in re.finditer(word, text, re.IGNORECASE)
    ]


def defined(tree: ast.Module) -> Iterator[str]:
    """The names that a file gives: to modules, classes, functions, arguments, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


@cache
def wrong_name(name: str) -> str | None:
    """What is better, of a name that has such a word."""
    words = f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()}_"
    parts = [better for part, better in PARTS.items() if f"_{part}_" in words]
    return parts[0] if parts else NAMES.get(name.lstrip("_"))


def prose(source: str) -> str:
    """The comments and strings of a file: `tokenize` says the same six times as slowly."""
    return " ".join(found[0].lstrip("# ") for found in PROSE.finditer(source))


def wrong_in(folder: str) -> list[str]:
    found = []
    # what is below tests/ stands in TESTS, and what src/redelivery links to is a folder of its own
    pattern = {"tests": "*.py", "src": "redelivery/*.py"}.get(folder, "**/*.py")
    for path in sorted((ROOT / folder).glob(pattern)):
        source, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if any(map(wrong_name, {path.stem, *re.findall(r"[^\W\d]\w*", source)})):  # the first look is the cheap one
            names = {path.stem, *defined(ast.parse(source))}
            found += [f"{where}: {name} (better: {better})" for name in sorted(names) if (better := wrong_name(name))]
        if path.name != Path(__file__).name:
            found += [f"{where}: {each}" for each in wrong_words(prose(source))]
    return found


def without_subject(source: str) -> list[str]:
    """The first lines of docstrings that have neither a subject nor a verb in front."""
    if BEGINS_SO.search(source) is None:
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    return [text.splitlines()[0] for text in texts if WITHOUT_SUBJECT.match(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_plain_words(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert wrong_words(text, WORDS if page.name == "CHANGELOG.md" else None) == []


@pytest.mark.parametrize("folder", [*FOLDERS, *TESTS])
def test_code_uses_plain_words(folder: str) -> None:
    assert wrong_in(folder) == []


@pytest.mark.parametrize("room", [*ROOMS, "examples"])
def test_a_docstring_begins_with_a_subject_or_a_verb(room: str) -> None:
    found = {str(path.relative_to(ROOT)): without_subject(path.read_text()) for path in (ROOT / room).rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_docstring_without_a_subject_is_found() -> None:
    source = 'class A:\n    """Its reader."""\n    def f(self):\n        """Itself."""\n'
    assert without_subject(source) == ["Its reader."]


def test_the_words_are_found_where_they_are() -> None:
    assert len(wrong_words("What fails comes again. 'x' is no body, there is no port. The pain it ends.")) == 3
    wrong = ("Station", "_stand_in", "DoorLink", "told", "look", "_Unit")
    assert all(map(wrong_name, wrong))
    assert not any(map(wrong_name, ("outdoor", "look_up", "overhead", "units_of", "storyteller", "in_doubt")))
    source = "# it comes again\nx = f'{y} is no body'\n"
    assert len(wrong_words(prose(source))) == 2


def test_the_catalogue_of_errors_is_complete() -> None:
    page = (ROOT / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+Error)`(?: \(also `(\w+)`\))? \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert sorted(name for name, *_ in rows) == sorted(errors.__all__)
    for name, also, *_ in rows:
        builtins = [base for base in getattr(errors, name).__mro__[1:] if base.__module__ == "builtins"]
        ours = [base.__name__ for base in builtins if base not in Exception.__mro__ and base is not OSError]
        assert ours[:1] == ([also] if also else []), name
