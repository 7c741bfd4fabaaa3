"""Implements tools that read and change files, such as `cp`, `rm` and `ls`.

Guarantees: if a command copies a file that no script has written, the copy is an empty file, as if the image contained
the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
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


def _tee(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, names = parted(arguments)
    text = desk.input()
    for path in (desk.path(each) for each in names):
        desk.files[path] = (desk.files.get(path, "") if "a" in options else "") + text
    return Outcome(out=text)


FILE: Final[Mapping[str, Tool]] = {
    "cp": _copy,
    "ln": _copy,
    "ls": _ls,
    "mkdir": _mkdir,
    "mv": _move,
    "rm": _rm,
    "tee": _tee,
    "touch": _touch,
}
"""The tools of this module, by name."""
