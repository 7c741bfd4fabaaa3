"""Changes of a status whole: what a patch made of one object, and so makes of those that are like it.

When many objects change at once, most of them change alike: pods of one template are given an address and become ready.
So what a patch made of two objects is known for the third, if all three are the same but for what is their own.

Guarantees:
- What an object becomes is what the whole way would make of it, byte for byte. A transition is used once two objects of
  different names have left the same, before and after, with their names, uids, drawn names and the addresses in their
  patches cut out; and only for patches that are the same, but for these, by the same manager. Of a patch that names a
  version, or a name, there are no two that are let in.
- It is used where nothing but the object and the patch decides (`Strategy.status_is_plain`), for the same requester,
  and while all stands that admission rested on (`Precedent`).
- It is known for the second in which it was learned, which is in the objects' times: what is remembered for longer
  would not be asked for, and what comes more seldom is in no hurry.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.engine.attributes import Attributes, Precedent
from ctrlmgr.engine.names import DRAWN_LENGTH
from ctrlmgr.engine.options import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Body
from ctrlmgr.engine.verbs.attempts import Decision
from ctrlmgr.engine.verbs.cuts import MARKS, Template, without
from ctrlmgr.engine.verbs.request import Request
from ctrlmgr.eventlog.event import EventType, Proposal

_ENTRIES: Final = 256
"""How many are remembered."""
_LONGEST: Final = 16 * 1024
"""Bytes of the longest object that is looked at, and of the longest patch."""
_OCTET: Final = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_addresses = re.compile(rb'"(%b(?:\.%b){3})"' % (_OCTET, _OCTET)).findall
_is_plain = re.compile(rb"[^\x00-\x1f\\]*").fullmatch
"""Whether a patch has nothing in it that reads otherwise than it looks, nor marks."""


class _ManagedFields(msgspec.Struct, rename="camel"):
    managed_fields: list[dict[str, Any]] = []


class _Managed(msgspec.Struct):
    metadata: _ManagedFields


_decode_managed = msgspec.json.Decoder(_Managed).decode


class _Key(NamedTuple):
    """What is the same of all writes that are alike."""

    kind: Hashable
    manager: str
    media_type: str
    validation: str
    patch: bytes
    """With a mark for what is the object's own."""
    before: bytes = b""
    """The object, with marks as well, once it has been looked at."""


class _Transition:
    """What objects become that are alike, and why they would."""

    __slots__ = ("_after", "_annotations", "_name", "_precedent", "_requester", "_template")

    def __init__(self, request: Request, name: str, after: bytes, precedent: Precedent) -> None:
        """Take a write, the name of the object, what it has left, and why it was let in."""
        self._requester = request.requester
        self._annotations = dict(request.annotations)
        self._name = name
        self._after = after
        self._precedent = precedent
        self._template: Template | None = None  # once another has left the same

    def confirm(self, met: _Transition) -> None:
        """Hear what one before has become."""
        agrees = met._after == self._after and met._annotations == self._annotations
        if agrees and met._name != self._name:
            self._template = Template(self._after)

    def of(self, request: Request, own: Sequence[bytes]) -> bytes | None:
        """Return what an object becomes, given what is its own; None if that cannot be said."""
        if self._template is None or request.requester != self._requester or not self._precedent.stands(request.state):
            return None
        request.annotations.update(self._annotations)
        self._precedent.follow()
        return self._template.filled(own)


class _Second:
    """What is known of one second. Any thread may ask: an entry of a dictionary changes at once."""

    __slots__ = ("_transitions", "now")

    def __init__(self, now: str) -> None:
        """Know nothing yet of a second (RFC 3339)."""
        self.now = now
        self._transitions: dict[_Key, _Transition | None] = {}

    def has_seen(self, key: _Key) -> bool:
        """Say whether such a write came before, and remember that it has."""
        if key in self._transitions:
            return True
        if len(self._transitions) < _ENTRIES:
            self._transitions[key] = None
        return False

    def transition(self, key: _Key) -> _Transition | None:
        """Return what such a write made of an object."""
        return self._transitions.get(key)

    def keep(self, key: _Key, transition: _Transition) -> None:
        """Know what a write made of an object that has been seen before."""
        self._transitions[key] = transition


class Recurrence:
    """A patch that may be like one before: it is asked what the object becomes, or is told."""

    __slots__ = ("_addresses", "_key", "_own", "_precedent", "_request", "_second", "_was_seen")

    def __init__(self, request: Request, key: _Key, addresses: Sequence[bytes], second: _Second) -> None:
        """Take the patch without the object's own, the addresses that were in it, and what is known."""
        self._request = request
        self._key = key
        self._addresses = addresses
        self._second = second
        self._own: Sequence[bytes] = ()
        self._was_seen = False  # such an object as well: only then it is of use to know what it becomes
        self._precedent: Precedent | None = None

    def known(self, current: Object) -> Decision | None:
        """Return the decision if it is known what the object becomes."""
        plan, metadata, body = self._request.plan, current.metadata, current.body
        drawn = _drawn(body, plan.drawn_from)
        own = (metadata.name.encode(), metadata.uid.encode(), *self._addresses, *drawn)
        before = without(body, own) if len(body) <= _LONGEST else None
        if before is None:
            return None
        self._own = own
        self._key = key = self._key._replace(before=before)
        self._was_seen = self._second.has_seen(key)
        transition = self._second.transition(key)
        after = None if transition is None else transition.of(self._request, own)
        if after is None:
            return None
        changed = Object(plan.storage, after, 0, metadata)
        return Decision(200, (Proposal(EventType.MODIFIED, changed, current.revision),), 0)

    def admit(self, attributes: Attributes) -> None:
        """Hear what admission is about to see."""
        if self._was_seen:
            self._precedent = self._request.admission.precedent(attributes)

    def learn(self, current: Object, decision: Decision) -> None:
        """Hear what was decided the whole way."""
        if self._precedent is None or not _is_plain_change(decision, current):
            return
        obj = decision.proposals[0].object
        after = without(obj.body, self._own)
        if after is None or _sorts(obj, self._addresses):
            return
        transition = _Transition(self._request, obj.name, after, self._precedent)
        met = self._second.transition(self._key)
        if met is not None:
            transition.confirm(met)
        self._second.keep(self._key, transition)


class Transitions:
    """The transitions of one engine."""

    def __init__(self) -> None:
        """Know none."""
        self._second = _Second("")

    def recurrence(self, request: Request, current: Object, body: Body) -> Recurrence | None:
        """Take a patch for one that may come again; None for those that must be looked at."""
        plan, data, options = request.plan, body.data, request.options
        if request.target.subresource != "status" or not plan.status_is_plain or options.dry_run:
            return None
        if body.media_type not in (MERGE_PATCH, STRATEGIC_MERGE_PATCH) or len(data) > _LONGEST:
            return None
        addresses = tuple(dict.fromkeys(_addresses(data)))
        if not _is_plain(data) or _overlap(addresses):
            return None
        patch = data.replace(current.uid.encode(), MARKS[1])
        for mark, address in zip(MARKS[2:], addresses, strict=False):
            patch = patch.replace(b'"%b"' % address, mark)
        second = self._second
        if second.now != request.now:
            second = self._second = _Second(request.now)
        key = _Key(plan, request.manager, body.media_type, options.field_validation, patch)
        return Recurrence(request, key, addresses, second)


def _is_plain_change(decision: Decision, current: Object) -> bool:
    """Whether an object was changed in nothing but its body, and all else is as if it had not been."""
    if len(decision.proposals) != 1 or decision.warnings or decision.late or decision.changed_by:
        return False
    proposal = decision.proposals[0]
    return proposal.type is EventType.MODIFIED and proposal.object.metadata == current.metadata


def _overlap(texts: Sequence[bytes]) -> bool:
    """Whether one text is part of another."""
    return len(texts) > 1 and any(sum(text in other for other in texts) > 1 for text in texts)


def _drawn(body: bytes, bases: Sequence[bytes]) -> list[bytes]:
    """Return the names in a body that were drawn from bases, one of each base that is in it."""
    found = ((base, body.find(base)) for base in bases)
    return [body[at : at + len(base) + DRAWN_LENGTH] for base, at in found if at >= 0]


def _sorts(obj: Object, addresses: Sequence[bytes]) -> bool:
    """Whether an object's managed fields have an address among other keys, with which they are sorted."""
    texts = [address.decode() for address in addresses]
    return any(_is_among(entry, texts) for entry in _decode_managed(obj.body).metadata.managed_fields)


def _is_among(fields: Mapping[str, Any], texts: Sequence[str]) -> bool:
    keys = [key for key in fields if key != "."]
    if len(keys) > 1 and any(text in key for text in texts for key in keys):
        return True
    return any(_is_among(below, texts) for below in fields.values() if isinstance(below, dict))
