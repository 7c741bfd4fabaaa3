"""Implements `tar` and `ps`, which `kubectl cp` and the inspection of a container need.

Guarantees: if bytes of a file are not UTF-8, they are preserved, because strings represent them as surrogates.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ctrlmgr.simulation.shell.tool_interface import Outcome, Tool, ToolContext

COMMAND_LINE: Final = "/proc/1/cmdline"
"""The file with the command line of a container's first process; each word is followed by a NUL character."""


def encoded(text: str) -> bytes:
    """Return the bytes that a string in the simulation represents."""
    return text.encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> str:
    """Return the string that represents bytes in the simulation."""
    return data.decode("utf-8", "surrogateescape")


def _tar(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    words = [*arguments]
    if words and not words[0].startswith("-"):
        words[0] = f"-{words[0]}"
    letters, names, folder, archive = "", list[str](), ".", "-"
    while words:
        word = words.pop(0)
        if word == "-" or not word.startswith("-"):
            names.append(word)
            continue
        letters += word[1:]
        if word.endswith("C") and words:
            folder = words.pop(0)
        elif word.endswith("f") and words:
            archive = words.pop(0)
    base = desk.path(folder)
    if "c" in letters:
        return _packed(archive, names, base, desk)
    return _unpacked(archive, base, desk) if "x" in letters else Outcome(1, err="tar: need c or x\n")


def _packed(archive: str, names: Sequence[str], base: str, desk: ToolContext) -> Outcome:
    buffer, err = io.BytesIO(), ""
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            path = name if name.startswith("/") else f"{base.rstrip('/')}/{name}"
            found = [*_below(desk.path(path), desk)]
            if not found:
                err += f"tar: {name}: Cannot stat: No such file or directory\n"
            for each, is_folder in found:
                _add(tar, each, is_folder, "" if name.startswith("/") else f"{base.rstrip('/')}/", desk)
    text = decoded(buffer.getvalue())
    if archive == "-":
        return Outcome(2 if err else 0, text, err)
    desk.files[desk.path(archive)] = text
    return Outcome(2 if err else 0, err=err)


def _below(path: str, desk: ToolContext) -> Iterator[tuple[str, bool]]:
    """Yield a path and all paths below the path; for each path, also yield whether it is a folder."""
    below = f"{path.rstrip('/')}/"
    if path in desk.files:
        yield path, False
    elif desk.files.is_folder(path):
        yield path, True
        for each in sorted(desk.files):
            if each.startswith(below):
                yield (each.removesuffix("/."), True) if each.endswith("/.") else (each, False)


def _add(tar: tarfile.TarFile, path: str, is_folder: bool, base: str, desk: ToolContext) -> None:
    info = tarfile.TarInfo(path.removeprefix(base).lstrip("/") or ".")
    if is_folder:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
    else:
        data = encoded(desk.files[path])
        info.size, info.mode = len(data), 0o644
        tar.addfile(info, io.BytesIO(data))


def _unpacked(archive: str, base: str, desk: ToolContext) -> Outcome:
    text = desk.input() if archive == "-" else desk.files.get(desk.path(archive))
    if text is None:
        missing = f"tar: {archive}: Cannot open: No such file or directory\n"
        return Outcome(2, err=f"{missing}tar: Error is not recoverable: exiting now\n")
    if not text:  # as for /dev/null; a simulated download is empty
        return Outcome(err="tar: the archive is empty, as simulated downloads are: nothing is unpacked\n")
    try:
        with tarfile.open(fileobj=io.BytesIO(encoded(text))) as tar:
            for member in tar:
                path = desk.path(f"{base.rstrip('/')}/{member.name}")
                content = tar.extractfile(member) if member.isfile() else None
                if content is not None:
                    desk.files[path] = decoded(content.read())
                elif member.isdir() and not desk.files.is_folder(path):
                    desk.files[f"{path}/."] = ""
    except tarfile.TarError as error:
        return Outcome(1, err=f"tar: {error}\n")
    return Outcome()


def _ps(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    words = desk.files.get(COMMAND_LINE, "").replace("\0", " ").strip()
    return Outcome(out=f"PID   USER     TIME  COMMAND\n    1 root      0:00 {words}\n")


ARCHIVE: Final[Mapping[str, Tool]] = {"ps": _ps, "tar": _tar}
"""The tools of this module, by name."""
