"""Finds our messages that Kubernetes' source does not contain.

A message is split at its placeholders into pieces. Each piece of at least two words must be (part of) one of
Kubernetes' messages, or of such a message with filled-in placeholders; the same rule applies to the strings that fill
the placeholders. White space and quotes around placeholders are ignored.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.messages.reading import HOLE, Literal, ours, with_holes

HERE: Final = Path(__file__).parent
KUBERNETES: Final = HERE / "kubernetes.txt"
OWN: Final = HERE / "own.toml"
PACKAGE: Final = HERE.parents[1] / "ctrlmgr"
FOLDERS: Final = ("kinds", "admission", "extensions", "engine", "schema")
"""The folders of the package whose messages occur in responses to requests."""

_QUOTED: Final = re.compile(rf"""(["'`]){HOLE}\1""")
_WORD: Final = re.compile(r"\S*[A-Za-z]{2}\S*")
_WORDS: Final = 2
"""The minimum number of words of a piece that is compared."""
_MARKS: Final = " ;:,.()[]{}"
_ENOUGH: Final = 8
"""The minimum number of letters outside placeholders that a message of Kubernetes must have to be compared with
filled-in placeholders.
"""


def plain(text: str) -> str:
    """Return a message in the normal form in which messages are compared."""
    return " ".join(_QUOTED.sub(HOLE, text).split())


class KubernetesMessages:
    """Messages of Kubernetes, in the form of `kubernetes.txt`: Go format strings, one per line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._texts = [plain(with_holes(line)) for line in lines if not line.startswith("#")]

    @cached_property
    def _all(self) -> str:
        return f" {HOLE * 2} ".join(["", *self._texts, ""])

    @cached_property
    def _formats(self) -> list[list[str]]:
        formats = (each for each in self._texts if HOLE in each and sum(map(str.isalpha, each)) >= _ENOUGH)
        return [each.split(HOLE) for each in formats]

    def has(self, text: str) -> bool:
        """Return whether Kubernetes could produce the message."""
        text = plain(text)
        pieces = [piece for cut in text.split(HOLE) for piece in cut.split(": ")]
        return self._is_filled_in(text) or all(map(self._has_piece, pieces))

    def _has_piece(self, piece: str) -> bool:
        piece = piece.strip(_MARKS)
        return len(_WORD.findall(piece)) < _WORDS or self._is_part(piece) or self._is_filled_in(piece)

    def _is_part(self, piece: str) -> bool:
        at = self._all.find(piece)
        while at >= 0:
            if not _is_word(self._all[at - 1 : at + 1]) and not _is_word(self._all[at + len(piece) - 1 :][:2]):
                return True
            at = self._all.find(piece, at + 1)
        return False

    def _is_filled_in(self, text: str) -> bool:
        return any(filled is not None and all(map(self.has, filled)) for filled in self._filled(text))

    def _filled(self, text: str) -> Iterator[list[str] | None]:
        return (_filled(text, each) for each in self._formats if text.startswith(each[0]) and text.endswith(each[-1]))


def _is_word(text: str) -> bool:
    """Return whether two adjacent characters belong to the same word."""
    return text.isalnum()


def _filled(text: str, parts: Sequence[str]) -> list[str] | None:
    """Return the strings between these parts of a message; return None if the message does not consist of the parts."""
    first, *rest = parts
    at, found = len(first), list[str]()
    for part in rest:
        end = text.find(part, at + 1) if part else len(text)
        if end < 0:
            return None
        found.append(text[at:end])
        at = end + len(part)
    return found if at == len(text) else None


def kubernetes() -> KubernetesMessages:
    """Return the messages in `kubernetes.txt`."""
    return KubernetesMessages(KUBERNETES.read_text(encoding="utf-8").splitlines())


def own() -> Mapping[str, str]:
    """Return the messages in `own.toml`, with `{}` for placeholders, and the reason for each."""
    groups = tomllib.loads(OWN.read_text(encoding="utf-8"))
    return {text: group["reason"] for group in groups.values() for text in group["texts"]}


def shown(text: str) -> str:
    """Return a message in the form of the entries of `own.toml`."""
    return " ".join(text.replace(HOLE, "{}").split())


def justifies(justified: str, text: str) -> bool:
    """Return whether an entry of `own.toml` equals a message, or equals the message after
    placeholders are filled in.
    """
    parts = justified.split("{}")
    return text == justified or (
        text.startswith(parts[0]) and text.endswith(parts[-1]) and len(parts) > 1 and _filled(text, parts) is not None
    )


def unknown(known: KubernetesMessages, literals: Iterable[Literal]) -> list[Literal]:
    """Return our messages that Kubernetes does not have."""
    return [each for each in literals if not known.has(each.text)]


def unjustified(literals: Iterable[Literal]) -> list[Literal]:
    """Return our messages that no entry of `own.toml` justifies."""
    justified = own()
    return [each for each in literals if not any(justifies(entry, shown(each.text)) for entry in justified)]


def literals() -> Iterator[Literal]:
    """Yield the messages of ctrlmgr that are compared."""
    return ours(PACKAGE, FOLDERS)
