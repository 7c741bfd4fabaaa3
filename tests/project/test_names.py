"""Tests that names in backticks exist: files, and modules, classes and functions of this project.

The checked texts are the pages of `docs`, README, CONTRIBUTING, and all docstrings. `CHANGELOG.md` is not checked,
because it contains names of earlier versions. The tests check these names:

- a path (`tests/project/names.py`): the file or folder exists;
- a file name (`decide.py`): a file whose path ends with this name exists;
- a dotted name that begins with a package of this project (`ctrlmgr.engine.writes`, `engine.writes`): the module or its
  member exists, or the name is a key of the settings;
- a member of a module of this project (`module.Name`): a module with this name has the member;
- in docstrings, a name in CapWords (`SliceWriter`): it occurs in the code or in Kubernetes (`kubernetes_names.txt`).
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("ctrlmgr", "migrations", "bench", "tests")
ROOTS = (*OURS, "docs", "scripts", "examples")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILES = sorted(path for folder in OURS for path in (ROOT / folder).rglob("*.py"))
TRACKED = sorted(path for folder in ROOTS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)

KUBERNETES = frozenset((Path(__file__).parent / "kubernetes_names.txt").read_text(encoding="utf-8").split())
"""Names of Kubernetes, Go and other programs that occur in the checked texts."""
NOT_OURS = frozenset({"tests/project/names.py", "operator.py", "website.py", "file.py", "module.Name", "ctrlmgr.apps"})
"""Names that the reader of a page invents, examples in this module, and the group of entry points."""
NO_MODULES = ("db", "io", "py")
"""Suffixes of names that are files or API groups."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def docstrings(path: Path) -> tuple[ast.Constant, ...]:
    """Return the docstrings of modules, classes, functions and variables."""
    alone = (each.value for each in ast.walk(tree(path)) if isinstance(each, ast.Expr))
    return tuple(each for each in alone if isinstance(each, ast.Constant) and isinstance(each.value, str))


@cache
def known() -> frozenset[str]:
    """Return each identifier in the code, and each word in the strings of the code except docstrings."""
    return frozenset(word for path in FILES if path != Path(__file__) for word in words(path))


def words(path: Path) -> Iterator[str]:
    texts = {id(each) for each in docstrings(path)}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in texts:
                yield from re.findall(r"\w+", node.value)
        else:
            yield from (value for _, value in ast.iter_fields(node) if isinstance(value, str))


@cache
def modules() -> dict[str, Path]:
    """Return the paths of this project's modules and packages, by their dotted names."""
    names = {}
    for path in FILES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


@cache
def members(path: Path) -> frozenset[str]:
    """Return the names in a module, including the members of its classes."""
    found = (value for node in ast.walk(tree(path)) for _, value in ast.iter_fields(node) if isinstance(value, str))
    return frozenset(found)


@cache
def settings_keys() -> frozenset[str]:
    loaded = tomllib.loads((ROOT / "settings.toml").read_text(encoding="utf-8"))
    return frozenset(f"{section}.{key}" for section, keys in loaded.items() for key in keys)


def code_in(text: str) -> Iterator[str]:
    """Yield the strings in backticks in a text, except fenced blocks."""
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def unresolved(text: str, *, is_code: bool) -> list[str]:
    """Return the names in backticks that look like names of this project but do not exist."""
    return [each for each in code_in(text) if not resolves(each, is_code=is_code)]


def resolves(name: str, *, is_code: bool) -> bool:
    if name in NOT_OURS or name in KUBERNETES or re.search(r"\b[A-Z]{3,}\b", name):
        return True
    if re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*/?(?:::\w+)?", name) and (re.search(r"\w\.py$", name) or is_below(name)):
        return name.partition("::")[0].rstrip("/") in ends()
    if re.fullmatch(r"[a-z_]+(?:\.\w+)+(?:\(\))?", name):
        return name.endswith(NO_MODULES) or name in known() or is_member(name.removesuffix("()"))
    return not is_code or not re.fullmatch(r"(?:[A-Z][a-z0-9]+){2,}", name) or name in known()


def is_below(name: str) -> bool:
    """Return whether a name is a path below a folder of this project."""
    return "/" in name and name.split("/")[0] in ROOTS


@cache
def ends() -> frozenset[str]:
    """Return each path in this project, and each path without its first folders."""
    parts = [path.relative_to(ROOT).parts for path in (*TRACKED, *(ROOT / each for each in ROOTS))]
    return frozenset("/".join(each[start:]) for each in parts for start in range(len(each)))


@cache
def packages() -> frozenset[str]:
    """Return the names of the modules and packages directly in `ctrlmgr`."""
    return frozenset(each.split(".")[1] for each in modules() if each.startswith("ctrlmgr."))


@cache
def by_basename() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for name, path in modules().items():
        found.setdefault(name.rpartition(".")[2], []).append(path)
    return found


def is_member(name: str) -> bool:
    """Return whether a dotted name is a module of this project, a member of such a module, a key of the settings, or a
    name of another project.
    """
    parts = name.split(".")
    if parts[0] == "ctrlmgr":
        return found(parts)
    if parts[0] in packages():
        return name in settings_keys() or found(["ctrlmgr", *parts]) or found_anywhere(parts)
    is_ours = len(parts) == 2 and parts[0] in by_basename() and re.match(r"[A-Z]", parts[1]) is not None
    return not is_ours or found_anywhere(parts)


def found(parts: list[str]) -> bool:
    for count in range(len(parts), 0, -1):
        path = modules().get(".".join(parts[:count]))
        if path is not None:
            return set(parts[count:]) <= members(path)
    return False


def found_anywhere(parts: list[str]) -> bool:
    """Return whether a module of this project whose name is the first part has the other parts as members."""
    return any(set(parts[1:]) <= members(path) for path in by_basename().get(parts[0], ()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_on_a_page_exist(page: Path) -> None:
    assert unresolved(page.read_text(encoding="utf-8"), is_code=False) == []


@pytest.mark.parametrize("folder", OURS)
def test_names_in_docstrings_exist(folder: str) -> None:
    paths = [path for path in FILES if path.relative_to(ROOT).parts[0] == folder]
    assert [
        f"{path.relative_to(ROOT)}:{text.lineno}: {name}"
        for path in paths
        for text in docstrings(path)
        for name in unresolved(str(text.value), is_code=True)
    ] == []


@pytest.mark.parametrize(
    "name",
    ["ctrlmgr/gone.py", "ctrlmgr/engine/gone", "gone.py", "ctrlmgr.gone", "engine.gone", "cacher.Gone", "GoneForGood"],
)
def test_a_name_that_does_not_exist_is_found(name: str) -> None:
    assert unresolved(f"See `{name}`.", is_code=True) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "ctrlmgr/engine",
        "cacher.py",
        "ctrlmgr.engine.watch_cache.cacher",
        "engine.cacher",
        "cacher.Cacher",
        "ResourceStore",
    ],
)
def test_a_name_that_exists_is_accepted(name: str) -> None:
    assert unresolved(f"See `{name}`.", is_code=True) == []


def test_the_lists_contain_only_unresolved_names_that_occur() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    texts += [str(each.value) for path in FILES for each in docstrings(path)]
    cited = {name for text in texts for name in code_in(text)}
    assert {name for name in KUBERNETES | NOT_OURS if name not in cited} == set()
    assert KUBERNETES & known() == set()
