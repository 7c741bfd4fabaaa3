"""Architecture tests that linters do not have: use of threads, clocks and random numbers, and the length of files.

import-linter (`lint-imports`) checks the imports between packages.
"""

from __future__ import annotations

import ast
import builtins
import graphlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ctrlmgr"
OURS = ("ctrlmgr", "migrations", "bench", "tests")
MODULES = sorted(path.relative_to(ROOT).as_posix() for folder in OURS for path in (ROOT / folder).rglob("*.py"))
SHIPPED = [module for module in MODULES if module.startswith("ctrlmgr/")]
RUNNING = [module for module in SHIPPED if not module.startswith("ctrlmgr/testing/")]

WRITES_INTERNAL_OBJECTS = {
    "ctrlmgr/client/__init__.py",
    "ctrlmgr/controllers/bootstrap/bootstrap_tasks.py",  # leases of serving processes
    "ctrlmgr/controllers/repair/controller.py",  # claims on node ports
    "ctrlmgr/serve/controllers.py",
    "ctrlmgr/cli/maintenance/compact.py",  # the oldest revision for clients
    "ctrlmgr/cli/maintenance/repair.py",
}
"""The modules that may use `LogClient`, which bypasses the engine and admission."""
ONLY_ASKS = tuple(f"ctrlmgr/{each}/" for each in ("controllers", "manager", "scheduling", "simulation", "ui"))
"""Names of methods through which a caller can append any proposal to the log."""
PROPOSALS = {f"ctrlmgr.eventlog{module}.Proposal" for module in ("", ".event")}

MAY_READ_THE_MACHINE = ("ctrlmgr/clock.py", "ctrlmgr/serve/", "ctrlmgr/cli/", "ctrlmgr/randomness.py")
CLOCKS = {"time.time", "time.time_ns", "time.sleep", "time.monotonic", "time.monotonic_ns"}
CLOCKS |= {f"{owner}.{name}" for owner in ("datetime", "datetime.datetime") for name in ("now", "utcnow", "today")}
RANDOM_CLASSES = {"random.Random", "random.SystemRandom"}
LONGEST = 500
MOST_FILES = 25

# The words are split, so that this file does not contain them.
FORBIDDEN = ["pypi" + ".org", "python" + "hosted.org", "/work" + "/", "/root" + "/", "/home/" + "user"]


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"), module)


def dotted(node: ast.expr) -> str:
    """Return the dotted name `a.b.c` of a name or attribute expression, and an empty string for any
    other expression.
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def calls(module: str) -> Iterator[str]:
    """Yield the names of the functions that a module calls: full names of imports and built-ins, but not the module's
    own variables.
    """
    names = {name: name for name in dir(builtins)} | dict(imported(module))
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and (called := dotted(node.func)):
            first, dot, rest = called.partition(".")
            if first in names:
                yield names[first] + dot + rest


def imported(module: str) -> Iterator[tuple[str, str]]:
    """Yield (local name, full name) of each import, at any place in the file."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def is_random(name: str) -> bool:
    return (
        name == "uuid.uuid4"
        or name == "os.urandom"
        or (name.startswith(("random.", "secrets.")) and name not in RANDOM_CLASSES)
    )


@pytest.mark.parametrize("module", RUNNING)
def test_threads_start_in_one_place(module: str) -> None:
    started = {"threading.Thread", "threading.Timer", "concurrent.futures.ThreadPoolExecutor"} & set(calls(module))
    assert not started or module == "ctrlmgr/threads.py"


def test_api_objects_are_written_through_the_engine() -> None:
    names = {module: {name for _, name in imported(module)} for module in RUNNING}
    past = {module for module, found in names.items() if any(name.endswith(".LogClient") for name in found)}
    assert past == WRITES_INTERNAL_OBJECTS
    assert not [module for module, found in names.items() if module.startswith(ONLY_ASKS) and found & PROPOSALS]


@pytest.mark.parametrize("module", RUNNING)
def test_asyncio_stays_in_the_server_and_in_http(module: str) -> None:
    used = {name for _, name in imported(module) if name.split(".")[0] in ("asyncio", "uvloop")}
    runs_users_functions = module == "ctrlmgr/framework/coroutines.py"
    assert not used or module.startswith(("ctrlmgr/server/", "ctrlmgr/http/")) or runs_users_functions


@pytest.mark.parametrize("module", [module for module in RUNNING if not module.startswith(MAY_READ_THE_MACHINE)])
def test_time_and_randomness_are_injected(module: str) -> None:
    called = set(calls(module))
    assert not called & CLOCKS, "take a Clock instead"
    assert not {name for name in called if is_random(name)}, "take a random.Random instead"


def hand_written_caches(module: ast.Module) -> Iterator[int]:
    """Yield the lines at which a collection drops entries because its length has reached a limit."""
    for node in ast.walk(module):
        if isinstance(node, ast.If | ast.While):
            tested = (each for each in ast.walk(node.test) if isinstance(each, ast.Call) and dotted(each.func) == "len")
            bounded = {name for each in tested for argument in each.args if (name := dotted(argument))}
            yield from (part.lineno for part in node.body if any(evicted(each) & bounded for each in ast.walk(part)))


def evicted(node: ast.AST) -> set[str]:
    """Return the collection from which a statement or call removes an entry, as a cache does."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="clear" | "popitem")):
            return {dotted(owner)}
        case ast.Call(func=ast.Attribute(value=owner, attr="pop"), args=[ast.Call()]):  # .pop(next(iter(...)))
            return {dotted(owner)}
        case ast.Delete(targets=targets):
            items = [each for each in targets if isinstance(each, ast.Subscript)]
            return {dotted(each.value) for each in items if not isinstance(each.slice, ast.Slice)}
        case ast.Assign(targets=targets, value=ast.Dict(keys=[]) | ast.Call(args=[], keywords=[])):
            return {dotted(each) for each in targets}
    return set()


@pytest.mark.parametrize("module", [module for module in SHIPPED if not module.startswith("ctrlmgr/caches/")])
def test_bounded_caches_use_one_package(module: str) -> None:
    assert list(hand_written_caches(tree(module))) == [], "use ctrlmgr.caches"


@pytest.mark.parametrize(
    "eviction",
    [
        "self.x.clear()",
        "self.x.popitem(last=False)",
        "self.x.pop(next(iter(self.x)))",
        "del self.x[next(iter(self.x))]",
        "self.x = {}",
        "self.x = dict()",
    ],
)
@pytest.mark.parametrize("test", ["if len(self.x) >= 5", "while y or 5 < len(self.x)"])
def test_handwritten_caches_are_found(test: str, eviction: str) -> None:
    assert list(hand_written_caches(ast.parse(f"{test}:\n  {eviction}"))) == [2]
    assert list(hand_written_caches(ast.parse(f"{test}:\n  {eviction.replace('self.x', 'self.y')}"))) == []


@pytest.mark.parametrize("module", SHIPPED)
def test_only_the_command_line_prints_or_exits(module: str) -> None:
    ends = {"print", "sys.exit", "exit", "quit", "os._exit"} & set(calls(module))
    assert not ends or module.startswith(("ctrlmgr/cli/", "ctrlmgr/serve/"))


@pytest.mark.parametrize("module", MODULES)
def test_files_have_a_readable_length(module: str) -> None:
    assert len((ROOT / module).read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_folders_have_a_readable_size() -> None:
    files = Counter(module.rpartition("/")[0] for module in MODULES)
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}


def test_no_module_imports_itself_even_for_types() -> None:
    """import-linter compares packages; this test also compares single modules, including imports within functions."""
    names = {module.removesuffix(".py").removesuffix("/__init__").replace("/", "."): module for module in SHIPPED}
    needs: dict[str, set[str]] = {}
    for name, module in names.items():
        found = (full for _, full in imported(module))
        needs[name] = {each if each in names else each.rpartition(".")[0] for each in found} & names.keys() - {name}
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith("tests/")])
def test_every_module_has_a_docstring(module: str) -> None:
    assert ast.get_docstring(tree(module)), "a module opens with what it guarantees"


@pytest.mark.parametrize("module", MODULES)
def test_every_exception_to_a_rule_has_a_reason(module: str) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    bare = [line.strip() for line in text.splitlines() if re.search(r"#\s*(type: ignore|noqa)[^#]*$", line)]
    assert not bare, "say why in the same line, after another #"


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith("tests/")])
def test_no_test_is_skipped(module: str) -> None:
    marks = {"pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail", "pytest.importorskip"}
    if module.startswith("tests/e2e/") or module == "tests/robustness/test_faults.py":
        # Reasons to skip a test: an old kubectl, its own behaviour, or faults that need the rights of root.
        marks -= {"pytest.skip"}
    assert not marks & {dotted(node) for node in ast.walk(tree(module)) if isinstance(node, ast.expr)}


def texts() -> list[str]:
    """Return every file that contains text for readers, by its path."""
    folders = [ROOT / name for name in (*OURS, "docs", "scripts", ".ci", "examples")]
    files = [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml", ".lock")]
    files += [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    binary = (".pyc", ".gz", ".png")
    return sorted(path.relative_to(ROOT).as_posix() for path in files if path.suffix not in binary)


@pytest.mark.parametrize("file", texts())
def test_no_file_names_a_machine_or_a_registry(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert not [word for word in FORBIDDEN if word in text]
