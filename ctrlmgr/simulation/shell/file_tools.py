"""Implements tools that read and change files, such as `cp`, `rm` and `ls`.

Guarantees: if a command copies a file that no script has written, the copy is an empty file, as if the image contained
the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Final

from ctrlmgr.simulation.shell.tool_interface import Outcome, Tool, ToolContext, as_lines, parted


def _touch(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    for name in parted(arguments)[1]:
        path = desk.path(name)
        if path not in desk.files:
            desk.files[path] = ""
    return Outcome()


def _mkdir(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    for name in parted(arguments, "m")[1]:
        path = desk.path(name)
        if not desk.files.is_folder(path):
            desk.files[f"{path}/."] = ""
    return Outcome()


def _rm(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, names = parted(arguments)
    err = ""
    for path in (desk.path(each) for each in names):
        gone = [each for each in desk.files if each == path or each.startswith(f"{path.rstrip('/')}/")]
        for each in gone:
            del desk.files[each]
        if not gone and not {"f"} & options.keys():
            err += f"rm: can't remove '{path}': No such file or directory\n"
    return Outcome(int(bool(err)), err=err)


def _copy(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return _placed(arguments, desk, moves=False)


def _move(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    return _placed(arguments, desk, moves=True)


def _placed(arguments: Sequence[str], desk: ToolContext, *, moves: bool) -> Outcome:
    """Copy, move or link files; if a source does not exist, it counts as an empty file of the image."""
    options, names = parted(arguments, "t")
    if len(names) < 2:
        return Outcome(1, err="cp: missing file operand\n")
    *sources, target = (desk.path(each) for each in names)
    into = names[-1].endswith("/") or len(sources) > 1 or desk.files.is_folder(target)
    for source in sources:
        place = f"{target.rstrip('/')}/{posixpath.basename(source)}" if into else target
        below = f"{source.rstrip('/')}/"
        found = {each: place + each[len(source) :] for each in desk.files if each == source or each.startswith(below)}
        texts = {new: desk.files[old] for old, new in found.items()} or {place: ""}
        for new, text in texts.items():
            if "n" not in options or new not in desk.files:
                desk.files[new] = text
        for old in found if moves else ():
            del desk.files[old]
    return Outcome()


def _ls(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    names, lines, err = parted(arguments)[1] or ["."], [], ""
    for name in names:
        path = desk.path(name)
        below = f"{path.rstrip('/')}/"
        inside = {each[len(below) :].partition("/")[0] for each in desk.files if each.startswith(below)} - {"."}
        if path in desk.files and not inside:
            lines.append(name)
        elif desk.files.is_folder(path):
            lines += sorted(inside)
        else:
            err += f"ls: {name}: No such file or directory\n"
    return Outcome(int(bool(err)), as_lines(lines), err)


def _find(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    """Print or delete (`-delete`) the files below paths; the depth, the name and the type can be limited."""
    first = next((place for place, each in enumerate(arguments) if each.startswith("-")), len(arguments))
    tests = dict(pairwise(arguments[first:]))
    lines, err = [], ""
    for name in arguments[:first] or ["."]:
        found = _below(name, desk)
        err += "" if found else f"find: '{name}': No such file or directory\n"
        lines += [each for each in found if _passes(each, name, tests, desk)]
    if "-delete" in arguments:
        for path in (desk.path(each) for each in lines):
            for each in (path, f"{path}/."):
                desk.files.pop(each, None)
        lines = []
    return Outcome(int(bool(err)), as_lines(lines), err)


def _below(name: str, desk: ToolContext) -> list[str]:
    """Return a path, and all files and folders below it; an empty list if the path does not exist."""
    path = desk.path(name).rstrip("/")
    files = [each.removesuffix("/.") for each in desk.files if each == path or each.startswith(f"{path}/")]
    folders = {each[:end] for each in files for end in range(len(path) + 1, len(each)) if each[end] == "/"}
    found = {path, *files, *folders} if files or desk.files.is_folder(path) else set()
    return [name.rstrip("/") + each[len(path) :] for each in sorted(found)]


def _passes(found: str, root: str, tests: Mapping[str, str], desk: ToolContext) -> bool:
    depth = found[len(root.rstrip("/")) :].count("/")
    kind = "d" if desk.files.is_folder(desk.path(found)) else "f"
    least, most = (tests.get(each, "") for each in ("-mindepth", "-maxdepth"))
    return (
        (not least.isdecimal() or int(least) <= depth)
        and (not most.isdecimal() or depth <= int(most))
        and tests.get("-type", kind) == kind
        and fnmatchcase(posixpath.basename(found), tests.get("-name", "*"))
    )


def _tee(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, names = parted(arguments)
    text = desk.input()
    for path in (desk.path(each) for each in names):
        desk.files[path] = (desk.files.get(path, "") if "a" in options else "") + text
    return Outcome(out=text)


FILE: Final[Mapping[str, Tool]] = {
    "cp": _copy,
    "find": _find,
    "ln": _copy,
    "ls": _ls,
    "mkdir": _mkdir,
    "mv": _move,
    "rm": _rm,
    "tee": _tee,
    "touch": _touch,
}
"""The tools of this module, by name."""
