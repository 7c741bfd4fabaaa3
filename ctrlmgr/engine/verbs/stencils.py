"""New objects whole: what those that are alike became, with holes for what each has of its own.

A draft spares a creation its decoding and its defaults. If, besides, admission would decide the same once more, and the
kind's strategy has nothing of its own to say, then all that differs from the object before is known: its name, its uid,
its time, names that were drawn for it, and what it was granted: its address. They are put into the bytes that the one
before became.

Guarantees:
- What is put together is what the whole way would have made, byte for byte, drawn from the same random source in the
  same order: a stencil is used once two objects of different names have left the same, their own cut out.
- It is used for the same requester only, and while all stands that admission rested on (`Precedent`).
- Names go in that every kind takes: a label of RFC 1123, and where they are part of labels, none that is longer than
  one that was. Others take the whole way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.attributes import Attributes, Changer, Precedent
from ctrlmgr.engine.late import Late
from ctrlmgr.engine.names import generate_name, new_uid
from ctrlmgr.engine.options import Requester
from ctrlmgr.engine.verbs.attempts import Decision
from ctrlmgr.engine.verbs.cuts import Template, without
from ctrlmgr.engine.verbs.request import Request
from ctrlmgr.eventlog.event import EventType, Proposal

_TIMES: Final = 2
"""How often an object says when it was made: as its own time, and as that of its fields."""
_is_label = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?").fullmatch

_replace = msgspec.structs.replace
_Again: TypeAlias = Callable[[str, str], Late]


class _Common(NamedTuple):
    """All that two objects must have in common to be made by one stencil."""

    cut: bytes
    """It without its name, its uid, its time, names that were drawn, and what it was granted."""
    requester: Requester
    metadata: ObjectMeta
    """Without name, uid and time, and without labels if the name is part of some."""
    bases: Sequence[str]
    """What names are drawn from."""
    within: Revision | None
    changed_by: Sequence[Changer]
    annotations: Mapping[str, str]
    places: Sequence[str]
    """Of what is decided late."""


class Stencil:
    """What one object became, and why others would become the same."""

    __slots__ = ("_again", "_common", "_is_labelled", "_name", "_precedent", "_template", "granted")

    def __init__(
        self,
        common: _Common,
        name: str,
        granted: Sequence[str],
        again: Sequence[_Again],
        precedent: Precedent,
        *,
        is_labelled: bool,
    ) -> None:
        """Take what is not the object's own, its name, what it was granted, and what decides late for others.

        `is_labelled` says that its name is part of labels.
        """
        self._common = common
        self._name = name
        self._is_labelled = is_labelled
        self.granted = granted
        """What the object was granted: others are granted what is like it."""
        self._again = again
        self._precedent = precedent
        self._template = Template(common.cut)

    @classmethod
    def of(
        cls, request: Request, attributes: Attributes, decision: Decision, precedent: Precedent, names: int
    ) -> Stencil | None:
        """Return the stencil of a creation; None if there is more to it than can be cut out.

        `names` is how often it has its name in it, as that and within labels.
        """
        late, proposals = attributes.late, decision.proposals
        again = [each.again for each in late if each.again is not None]
        granted = request.plan.strategy.granted(attributes.fields)
        if len(proposals) != 1 + len(granted) or decision.warnings or request.asked or len(again) != len(late):
            return None
        obj, drawn = proposals[0].object, attributes.drawn
        cut = _cut(obj, request.now, [*(name for _, name in drawn), *granted], names)
        if cut is None:
            return None
        metadata = _replace(obj.metadata, name="", uid="", creation_timestamp=None)
        common = _Common(
            cut,
            request.requester,
            _replace(metadata, labels=None) if names > 1 else metadata,
            [base for base, _ in drawn],
            attributes.within,
            tuple(attributes.changed_by),
            dict(request.annotations),
            [each.place for each in late],
        )
        return cls(common, obj.name, granted, again, precedent, is_labelled=names > 1)

    def agrees(self, other: Stencil) -> bool:
        """Whether two objects have left the same that have nothing of their own in common."""
        are_apart = self._name != other._name and set(self.granted).isdisjoint(other.granted)
        return are_apart and self._common == other._common

    def fits(self, request: Request, name: str) -> bool:
        """Whether a request would make the same under a name; empty for one that is to be generated."""
        if request.options.dry_run or request.requester != self._common.requester:
            return False
        if self._is_labelled and len(name) > len(self._name):
            return False
        return (not name or _is_label(name) is not None) and self._precedent.stands(request.state)

    @property
    def generate_name(self) -> str:
        """What a name is generated from."""
        return self._common.metadata.generate_name

    def draw(self, request: Request) -> tuple[str, Sequence[str]]:
        """Draw a uid, and the names that admission draws, in the order in which it all is drawn."""
        random = request.random
        drawn = [generate_name(base, random) for base in self._common.bases]
        return new_uid(random), drawn

    def made(
        self, request: Request, name: str, uid: str, given: Sequence[str], companions: Sequence[Proposal] = ()
    ) -> Decision:
        """Return the decision to add the object of a name; `given` are drawn names, and what it was granted."""
        common, now = self._common, request.now
        own = [each.encode() for each in (name, uid, now, *given)]
        metadata = None
        if not self._is_labelled:
            metadata = _replace(common.metadata, name=name, uid=uid, creation_timestamp=now)
        obj = Object(request.plan.storage, self._template.filled(own), 0, metadata)
        request.annotations.update(common.annotations)
        self._precedent.follow()
        return Decision(
            201,
            (Proposal(EventType.ADDED, obj, 0, common.within), *companions),
            0,
            late=[again(name, now) for again in self._again],
            changed_by=common.changed_by,
        )


def _cut(obj: Object, now: str, given: Sequence[str], names: int) -> bytes | None:
    """Cut an object's own out of it; None if it cannot be told from the rest."""
    own = [each.encode() for each in (obj.name, obj.uid, now, *given)]
    body, (_, uid, time, *_) = obj.body, own
    if body.count(time) != _TIMES or body.count(uid) != 1:
        return None
    return without(body, own, everywhere=names > 1)
