"""New objects as admission first sees them, decoded and with defaults: known for bodies that come again.

What a template makes is the same again and again but for its name. So the second body that differs from one before in
nothing but `metadata.name` is neither decoded against its schema nor given defaults: it becomes what the first became.

Guarantees:
- A body is taken for the same only if all its other bytes are, and its manager and namespace. What was cut out is known
  to be the object's name: it stands once in the body, which has no escapes, and is what decoding found.
- Nothing is remembered that was warned of, whose defaults depend on its name, or that comes once (`Returning`). What is
  remembered is bounded in bytes.
- Each caller has an object of its own, to be used up; entries of managed fields share what they own.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.remembered import Returning
from ctrlmgr.api.unstructured import Unstructured

_ENTRIES: Final = 256
"""How many are remembered."""
_LONGEST: Final = 8 * 1024
"""Bytes of the longest body that is remembered."""
_METADATA, _NAME = b'"metadata":', b'"name":'
_is_name = re.compile(rb' ?"([a-z0-9][a-z0-9.-]{0,252})"').match
_ABSENT: Final = b"\0"  # which stands in no JSON
_COLLECTIONS: Final = ("labels", "annotations", "ownerReferences", "finalizers")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_returns = Returning()


class _Key(NamedTuple):
    """What is the same of all bodies that are alike."""

    kind: Hashable
    manager: str
    namespace: str
    rest: bytes
    """The body, and a mark where the name was."""


class Draft:
    """What a body became; shared by all that are like it."""

    __slots__ = ("_body", "_entry", "_right")

    def __init__(self, fields: Unstructured) -> None:
        """Take an object with one entry of managed fields, its name taken away."""
        metadata = fields["metadata"]
        self._entry = metadata["managedFields"][0]
        self._body = _encode({**fields, "metadata": {**metadata, "name": "", "managedFields": None}})
        self._right: Sequence[Any] | None = None

    def named(self, name: str, now: str) -> Unstructured:
        """Return it under a name, written at `now`, RFC 3339."""
        fields = _decode(self._body)
        metadata = fields["metadata"]
        metadata["name"] = name
        metadata["managedFields"] = [{**self._entry, "time": now}]
        return fields

    def is_right(self, metadata: Mapping[str, Any]) -> bool:
        """Whether metadata, but for its name, is as it was when it was found to be right."""
        right = self._right
        return right is not None and right == _collections(metadata)

    def found_right(self, metadata: Mapping[str, Any]) -> None:
        """Hear that nothing is wrong with metadata that was made from it."""
        self._right = deepcopy(_collections(metadata))


def _collections(metadata: Mapping[str, Any]) -> Sequence[Any]:
    managed = [(each.get("manager"), each.get("operation")) for each in _managed(metadata)]
    return [*map(metadata.get, _COLLECTIONS), managed]


def _managed(metadata: Mapping[str, Any]) -> Sequence[Any]:
    return metadata.get("managedFields") or ()


class Likeness:
    """A body of which the name has been cut out: what it is recognized by."""

    __slots__ = ("_drafts", "_key", "draft", "name")

    def __init__(self, drafts: Drafts, key: _Key, name: str, draft: Draft | None) -> None:
        """Take all of a body but a name, that name, and what another such body became, if that is known."""
        self._drafts = drafts
        self._key = key
        self.name = name
        self.draft = draft

    def became(self, fields: Unstructured, now: str) -> Draft | None:
        """Hear what the body has become, which nobody was warned of; return it if it is remembered."""
        if not _returns(self._key) or not self._says_its_name_once() or len(_managed(fields["metadata"])) != 1:
            return None
        draft = Draft(fields)
        if draft.named(self.name, now) != fields:  # what was cut out is not its name, say
            return None
        self._drafts.remember(self._key, draft)
        return draft

    def _says_its_name_once(self) -> bool:
        """Whether what was cut out is nowhere else in the body, however it may be written."""
        rest = self._key.rest
        return b"\\" not in rest and f'"{self.name}"'.encode() not in rest


class Drafts:
    """The drafts of one engine, of all kinds together. Any thread may ask: an entry of a dictionary changes at once."""

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[_Key, Draft] = {}

    def likeness(self, kind: Hashable, manager: str, namespace: str, body: bytes) -> Likeness | None:
        """Recognize a body that `manager` sends to a namespace; None for one that cannot be.

        `kind` stands for all that decoding and defaults depend on besides.
        """
        if len(body) > _LONGEST:
            return None
        at = body.find(_NAME, body.find(_METADATA)) + len(_NAME)
        found = _is_name(body, at)
        if found is None:
            return None
        rest = b"".join((body[: found.start(1)], _ABSENT, body[found.end(1) :]))
        key = _Key(kind, manager, namespace, rest)
        return Likeness(self, key, found[1].decode(), self._known.get(key))

    def remember(self, key: _Key, draft: Draft) -> None:
        """Know what a body became."""
        if len(self._known) >= _ENTRIES:
            self._known.clear()
        self._known[key] = draft
