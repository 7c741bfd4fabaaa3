"""New objects as admission first sees them, decoded and with defaults: known for bodies that come again.

What a template makes is the same again and again but for its name, which may be part of its labels and of what it
selects. So the second body that differs from one before in nothing else is neither decoded against its schema nor given
defaults: it becomes what the first became.

Guarantees:
- A body is taken for the same only if all its other bytes are, and its manager and namespace. The name is cut out
  wherever it stands, and that is nowhere but where decoding found it: as the object's name, and within the values of
  labels, which neither decoding nor defaults look at. Of a body that is to be given a name nothing is cut out.
- Nothing is remembered that was warned of, whose defaults depend on its name, or that comes once (`Returning`). What is
  remembered is bounded in bytes.
- Each caller has an object of its own, to be used up; entries of managed fields share what they own.
- A draft hears what its objects become in the end, and has a stencil for the next ones once that is known.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.remembered import Returning
from ctrlmgr.api.unstructured import Unstructured, at
from ctrlmgr.engine.verbs.request import Request
from ctrlmgr.engine.verbs.stencils import Stencil

_ENTRIES: Final = 256
"""How many are remembered."""
_LONGEST: Final = 8 * 1024
"""Bytes of the longest body that is remembered."""
_METADATA, _NAME, _GENERATE_NAME = b'"metadata":', b'"name":', b'"generateName":'
_is_name = re.compile(rb' ?"([a-z0-9][a-z0-9.-]{0,252})"').match
_VAIN: Final = 8
"""How many objects a draft learns from in vain: their kind has no stencils, say, or what admission rests on changes all
the time."""
_MARK: Final = b"\0"  # which stands in no JSON
_LABELS: Final = (
    ("metadata", "labels"),
    ("spec", "selector"),
    ("spec", "selector", "matchLabels"),
    ("spec", "template", "metadata", "labels"),
)
"""Where an object has labels, and where it selects by them: the values may be anything."""

_IDENTITY: Final = ("namespace", "uid", "resourceVersion")
"""What a body says, besides a name, of which object it is about."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Key(NamedTuple):
    """What is the same of all bodies that are alike."""

    kind: Hashable
    manager: str
    namespace: str
    rest: bytes
    """The body, and a mark wherever the name was."""


class Draft:
    """What a body became; shared by all that are like it."""

    __slots__ = ("_body", "_entry", "_in_vain", "_met", "_said", "_stencil")

    def __init__(self, fields: Unstructured, name: str, said: Mapping[str, Any]) -> None:
        """Take an object with one entry of managed fields, its name (empty: none), and what its body said of itself."""
        metadata = fields["metadata"]
        self._entry = metadata["managedFields"][0]
        self._body = _without(_encode({**fields, "metadata": {**metadata, "managedFields": None}}), name)
        self._said = said
        self._met: Stencil | None = None  # what an object has left, its own cut out
        self._stencil: Stencil | None = None  # once another has left the same
        self._in_vain = 0

    @property
    def names(self) -> int:
        """How often it has its name in it."""
        return self._body.count(_MARK)

    def said(self, name: str) -> Mapping[str, Any]:
        """Return the metadata by which a body of a name says which object it is about."""
        return {**self._said, "name": name}

    @property
    def may_learn(self) -> bool:
        """Whether it is of use to it to hear what such objects become in the end."""
        return self._in_vain < _VAIN

    def learn(self, stencil: Stencil | None) -> None:
        """Hear what an object that was made from it left, its own cut out; None if others may become something else."""
        self._in_vain += 1
        agrees = stencil is not None and self._met is not None and self._met.agrees(stencil)
        self._stencil = stencil if agrees else None
        self._met = stencil

    def stencil(self, request: Request, name: str) -> Stencil | None:
        """Return what makes the object of a request whole, under a name; None if that cannot be said."""
        stencil = self._stencil
        if stencil is None or not stencil.fits(request, name):
            return None
        self._in_vain = 0
        return stencil

    def named(self, name: str, now: str) -> Unstructured:
        """Return it under a name, empty for none yet, written at `now`, RFC 3339."""
        fields = _decode(self._body.replace(_MARK, name.encode()))
        fields["metadata"]["managedFields"] = [{**self._entry, "time": now}]
        return fields


class Likeness:
    """A body of which the name has been cut out: what it is recognized by."""

    __slots__ = ("_drafts", "_is_known_whole", "_key", "_said", "draft", "name")

    def __init__(self, drafts: Drafts, key: _Key, name: str, draft: Draft | None) -> None:
        """Take all of a body but its name, the name (empty: none), and what such a body became if that is known."""
        self._drafts = drafts
        self._key = key
        self._said: Mapping[str, Any] = {}
        self._is_known_whole = False  # whether its name is nowhere but where it may be
        self.name = name
        self.draft = draft

    def read(self, fields: Unstructured) -> None:
        """Hear what the body says, before anything is made of it."""
        metadata = fields.get("metadata") or {}
        self._said = {field: metadata[field] for field in _IDENTITY if field in metadata}
        self._is_known_whole = not self.name or self._key.rest.count(_MARK) == _mentions(fields, self.name)

    def became(self, fields: Unstructured) -> Draft | None:
        """Hear what the body has become, which nobody was warned of; return it if it is remembered."""
        if not self._drafts.returns(self._key) or not self._is_known_whole:
            return None
        if len(fields["metadata"].get("managedFields") or ()) != 1:
            return None
        draft = Draft(fields, self.name, self._said)
        if draft.names != _mentions(fields, self.name):  # a default is called so, say
            return None
        self._drafts.remember(self._key, draft)
        return draft


class Drafts:
    """The drafts of one engine, of all kinds together. Any thread may ask: an entry of a dictionary changes at once."""

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[_Key, Draft] = {}
        self.returns = Returning(4 * _ENTRIES)
        """Says which bodies come again."""

    def likeness(self, kind: Hashable, manager: str, namespace: str, body: bytes) -> Likeness | None:
        """Recognize a body that `manager` sends to a namespace; None for one that cannot be.

        `kind` stands for all that decoding and defaults depend on besides.
        """
        if len(body) > _LONGEST or _MARK in body:
            return None
        metadata = body.find(_METADATA)
        at = body.find(_NAME, metadata)
        if body.find(_GENERATE_NAME, metadata, at if at >= 0 else len(body)) >= 0:
            name, rest = "", body
        else:
            found = _is_name(body, at + len(_NAME))
            if found is None:
                return None
            name = found[1].decode()
            rest = _without(body, name)
        key = _Key(kind, manager, namespace, rest)
        return Likeness(self, key, name, self._known.get(key))

    def remember(self, key: _Key, draft: Draft) -> None:
        """Know what a body became."""
        if len(self._known) >= _ENTRIES:
            self._known.clear()
        self._known[key] = draft


def _without(body: bytes, name: str) -> bytes:
    """Return a body with a mark wherever a name is in it, if there is a name."""
    return body.replace(name.encode(), _MARK) if name else body


def _mentions(fields: Unstructured, name: str) -> int:
    """Return how often an object has a name as its name, and within the values of labels; 0 if it is not its name."""
    if not name or (fields.get("metadata") or {}).get("name") != name:
        return 0
    count = 1
    for path in _LABELS:
        labels = at(fields, *path)
        if isinstance(labels, dict):
            count += sum(value.count(name) for value in labels.values() if isinstance(value, str))
    return count
