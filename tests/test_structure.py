"""The shape of the house: folders that tell one story, short files, and no circle of imports between files.

It is the shape of the rooms: tests/ and benchmarks/ are flat, a file for each subject, however many there are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = sorted(path.name for path in (ROOT / "src" / "redelivery").iterdir() if (ROOT / path.name).is_dir())
FEWEST, MOST = 2, 14  # files and folders in a folder, without its __init__.py
LONGEST = 350  # lines of a file
ONE_STATE = {"client/ledger/ledger.py": 450}  # files that are one state machine, which a cut would open
MIDDLE = 120  # lines: half of the files have no more
SHORTEST_STORY = 3  # lines of a folder's docstring

# What a broker is called, how its own properties and queues begin, and what its words for a refusal look like (Java's
# classes, what it prints of a message, a place that was not filled in). Such a fact stands in the broker's dialect.
BROKERS = re.compile(
    r"activemq|artemis|hornetq|rabbitmq|qpid|broker-j|\bclassic\b|AMQ_|HQ_|\bx-(delivery|acquired|death|first-death)"
    r"|VirtualTopic|org\.apache|\.\w+Exception\b|(invalid|illegal|resource|security)\w*exception"
    r"|PERFORM_ACTION|(Core|Server)\)?Message|\{0\}",
    re.I,
)
WITHOUT_BROKERS = ("cli", "web", "spark", "client", "transports", "broker", "otel")
# operate/ reports on brokers and their files, policies/ reads those, model/ their dead letters, testing/ starts them.
# Within the others: the dialects, brokers' APIs over HTTP, what the embedded broker does as those whose files it obeys.
OF_BROKERS = ("transports/dialects/", "transports/management/", "broker/engine/rules/")
# URLs of another client, which this one cannot open: the text says what to write instead
SAID_ALL_THE_SAME = ("transports/registry.py",)
LIBRARY = "python-qpid-proton"
BELOW = re.compile(
    r"^redelivery\.(policies|transports\.dialects)\."
)  # where a broker's facts are: rooms below import them


def modules(room: str) -> dict[str, Path]:
    """The files of a room by their modules' names."""
    found = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        parts = ("redelivery", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = {name: path for room in ROOMS for name, path in modules(room).items()}


@cache
def nodes(path: Path) -> list[ast.AST]:
    """What a file imports, the attributes that it sets, and its classes, without what is in them."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Attribute(ctx=ast.Store()):
                found.append(node)
            case ast.ClassDef():
                node.body = []
                found.append(node)
    return found


@cache
def imports(name: str) -> frozenset[str]:
    """The files that a file imports: at the top, inside functions, and for types only."""
    found = set()
    for node in nodes(MODULES[name]):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            submodules = {f"{node.module}.{each.name}" for each in node.names}
            found |= submodules & MODULES.keys() or {node.module}
    return frozenset((found & MODULES.keys()) - {name})


def reached(name: str) -> set[str]:
    """The files that a file imports, and those that they import."""
    found: set[str] = set()
    todo = [name]
    while todo:
        new = imports(todo.pop()) - found
        found |= new
        todo += new
    return found


def wrong_folders(room: str) -> Iterator[str]:
    for folder in sorted({path.parent for path in modules(room).values()}):
        name = folder.relative_to(ROOT)
        parts = [path.stem for path in folder.glob("*.py") if path.name != "__init__.py"]
        parts += [path.name for path in folder.iterdir() if (path / "__init__.py").exists()]
        if not FEWEST <= len(parts) <= MOST:
            yield f"{name} has {len(parts)} files and folders, not {FEWEST} to {MOST}"
        story = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        if len(story.splitlines()) < SHORTEST_STORY:
            yield f"{name}/__init__.py does not tell the folder's story in its docstring"


def long_files(room: str) -> Iterator[str]:
    for path in modules(room).values():
        name, length = str(path.relative_to(ROOT)), len(path.read_text(encoding="utf-8").splitlines())
        if length > ONE_STATE.get(name, LONGEST):
            yield f"{name} has {length} lines"


def circles(room: str) -> Iterator[str]:
    for name in modules(room):
        circle = [other for other in reached(name) if name in reached(other)]
        if circle:
            yield f"{name} is in a circle of imports with {', '.join(sorted({*circle} - {name}))}"


def faults(room: str) -> list[str]:
    return [*wrong_folders(room), *long_files(room), *circles(room)]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_the_shape_of_the_house(room: str) -> None:
    assert faults(room) == []


def test_half_of_the_files_are_short() -> None:
    assert median(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values()) <= MIDDLE


def test_the_folders_of_the_client_import_each_other_in_one_direction() -> None:
    def part(name: str) -> str:
        return ".".join(name.split(".")[2:3])

    arrows: dict[str, set[str]] = {}
    for name in modules("client"):
        arrows.setdefault(part(name), set()).update(
            part(other) for other in imports(name) if other.startswith("redelivery.client.")
        )
    for folder in arrows:
        seen: set[str] = set()
        todo = arrows[folder] - {folder}
        while todo:
            seen |= (new := {todo.pop()} - seen)
            todo |= {other for each in new for other in arrows[each] - {each}}
        assert folder not in seen, f"client/{folder} imports what imports it: {sorted(arrows[folder])}"


def test_no_circle_goes_through_two_rooms() -> None:
    def room(name: str) -> str:
        return name.split(".")[1]

    crossing = {
        (name, other)
        for name in MODULES
        for other in imports(name)
        if room(name) != room(other) and name in reached(other)
    }
    assert crossing == set()


def broker_facts(path: Path, *, imports: bool) -> Iterator[str]:
    """Texts of the program that name a broker, and ``imports`` of its facts; what documents the code may."""
    text = path.read_text(encoding="utf-8")
    if BROKERS.search(text) is None:
        return
    tree = ast.parse(text)
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in documents:
            said = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        elif isinstance(node, ast.ImportFrom):
            said = " ".join([node.module or "", *(each.name for each in node.names)])
            if not imports and BELOW.search(said):
                continue
        else:
            continue
        if BROKERS.search(said.replace(LIBRARY, "")):
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {said}"


@pytest.mark.parametrize("room", WITHOUT_BROKERS)
def test_no_broker_is_named_outside_its_dialect(room: str) -> None:
    paths = {str(path.relative_to(ROOT)): path for path in modules(room).values()}
    outside = [path for name, path in paths.items() if not name.startswith((*OF_BROKERS, *SAID_ALL_THE_SAME))]
    assert [fact for path in outside for fact in broker_facts(path, imports=room in ("cli", "spark"))] == []


LEDGER = "client/ledger/"
LEDGER_FIELDS = ("state", "redeliveries", "cause", "attempts")  # of a Delivery
WRITTEN_ELSEWHERE = ["client/operations/acknowledge.py: missing[0].state"]  # rule 7 of the ledger says why


def ledger_fields_written(path: Path) -> Iterator[str]:
    """Where a file writes a field of another object that a delivery keeps for the ledger."""
    for node in nodes(path):
        match node:
            case ast.Attribute(value=ast.Name(id="self")):
                pass
            case ast.Attribute(attr=field) if field in LEDGER_FIELDS:
                yield f"{path.relative_to(ROOT)}: {ast.unparse(node)}"


def test_only_the_ledger_writes_what_a_delivery_keeps_for_it() -> None:
    paths = [path for room in ("client", "transports", "spark", "operate", "cli") for path in modules(room).values()]
    outside = [path for path in paths if not str(path.relative_to(ROOT)).startswith(LEDGER)]
    assert [each for path in outside for each in ledger_fields_written(path)] == WRITTEN_ELSEWHERE


def classes() -> Iterator[tuple[str, str]]:
    """Each class of the product, and its file."""
    for path in MODULES.values():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                yield node.name, str(path.relative_to(ROOT))


def test_the_name_of_a_class_is_given_once() -> None:
    """The two shells have the same names, as they are the same things: once each, and `aio.Message` beside ours."""
    given: dict[tuple[str, str], list[str]] = {}
    for name, path in classes():
        shell = re.match(r"client/(?:\w+/)*(aio|sync)|model/messages", path)
        given.setdefault((name, (shell[1] or "sync") if shell else ""), []).append(path)
    once = {key: paths for key, paths in given.items() if len(paths) > 1}
    assert once == {}
    shells = {name for name, shell in given if shell}
    assert {name: paths for (name, shell), paths in given.items() if not shell and name in shells} == {}


SEAM = ("seam", "flows", "delivery")
# what the standard library gives
UNTYPED = ["flows: Address: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]"]


def test_nothing_untyped_crosses_the_seam() -> None:
    found = []
    for name in SEAM:
        tree = ast.parse((ROOT / "transports" / f"{name}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.AnnAssign() | ast.arg(annotation=ast.expr()):
                    said = ast.unparse(node)
                case ast.FunctionDef(returns=ast.expr() as returned):
                    said = f"{node.name} -> {ast.unparse(returned)}"
                case _:
                    continue
            if re.search(r"\bAny\b", said):
                found.append(f"{name}: {said}")
    assert sorted(found) == UNTYPED


SHOWS = ("visible", "as_json", "to_json", "stamp", "len", "version", "_body")
PRINTS = ("print", "echo", "confirm", "write", "Text")
# What is neither of others nor a constant: numbers, our own words, and what was made visible before.
OUR_OWN = {
    "cli/app.py": {"VERSION"},
    "cli/main.py": {"VERSION"},
    "cli/console.py": {"shown", "listener.getsockname()[1]", "may"},
    "cli/demo/view.py": {"panel", "text", "step.style", "step.now.format(gone=gone, left=max(0.0, seconds - gone))"},
    "cli/dlq/editing.py": {"left"},
    "cli/dlq/files.py": {"count", "letters", "counting.of(letters)", "sys.stdout", "file"},  # as_json: cli/dlq/files.py
    "cli/dlq/receipts.py": {"count", "counts[name]", "text"},
    "cli/dlq/shown.py": {"when", "line"},
    "cli/messages.py": {"sent", "body", "body + b'\\n'"},  # what is received, where no terminal is
    "cli/parts/progress.py": {"speed", "sent", "wait"},
    "cli/parts/shown.py": {"command"},
    "cli/parts/tables.py": {"table", "'  '.join(padded).rstrip()", "row[at]"},
    "cli/parts/target.py": {"command"},
    "cli/parts/work.py": {"text", "self.moved"},
    "cli/policy.py": {"text"},  # a converted file, where no terminal is
    "cli/watching/screen.py": {  # codes of a terminal
        "''.join((each.segment.text for each in controls)).encode()",
        "self._console.file.fileno()",
    },
    "cli/watching/views.py": {"head", "_line(name, numbers, name_width)", "more", "found.kind"},
}


def printed_as_it_is(expression: ast.expr) -> Iterator[str]:
    """The parts of what is printed that are neither constants nor made visible."""
    match expression:
        case ast.Constant():
            pass
        case ast.Call(func=ast.Name(id=name)) if name in SHOWS:
            pass
        case ast.JoinedStr(values=parts):
            for each in parts:
                yield from printed_as_it_is(each)
        case ast.FormattedValue(value=value):
            yield from printed_as_it_is(value)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            yield from printed_as_it_is(one)
            yield from printed_as_it_is(other)
        case ast.Starred(value=ast.GeneratorExp(elt=each)):
            yield from printed_as_it_is(each)
        case _:
            yield ast.unparse(expression)


def test_nothing_of_others_is_printed_but_by_the_function_that_makes_it_visible() -> None:
    found: dict[str, set[str]] = {}
    for path in modules("cli").values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in PRINTS:
                    as_they_are = {each for argument in arguments for each in printed_as_it_is(argument)}
                    found.setdefault(str(path.relative_to(ROOT)), set()).update(as_they_are)
    new = {path: own for path, each in found.items() if (own := each - OUR_OWN.get(path, set()))}
    assert new == {}, "make it visible(), or say in OUR_OWN that nobody else has written it"
