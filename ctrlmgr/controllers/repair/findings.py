"""What is wrong with who holds what: the Services' own word compared with the claims in the log.

Guarantees:
- Pure: the same listings give the same findings in the same order; nothing is read, written or remembered.
- A value that several Services have is whose claim on it says so; without such a claim it is the first one's, in the
  order of the listing. Nothing is ever found against that one.
- An unused claim is a finding each time; whether it has been seen often enough to be released is for
  `controllers.repair` to know.

`repair_addresses` and `repair_ports` say what a Service has, and put findings into Kubernetes' words.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.kinds.allocators.claims import Claim, ParentReference


class Action(enum.Enum):
    """What a repair does about a finding."""

    REPORT = "report"
    """Nothing: an administrator has to decide."""
    CLAIM = "claim"
    """Create the claim that is missing."""
    CORRECT = "correct"
    """Put a claim of the Service's in the place of the one that is there."""
    RELEASE = "release"
    """Delete the claim, once it was seen often enough."""


class Finding(NamedTuple):
    """One thing that is wrong."""

    problem: str
    """What kind of thing, as Kubernetes' metrics tell them apart: `repair`, `duplicate`, `outOfRange` …"""
    reason: str
    """The same as the reason of an Event."""
    subject: Object
    """The Service it is about, or the claim."""
    value: str
    """The address or port."""
    message: str
    action: Action = Action.REPORT
    claim: Object | None = None
    """The claim to create, the right one, or the one to release."""
    wrong: Object | None = None
    """The claim whose place the right one takes."""
    silent: bool = False
    """Whether Kubernetes makes no Event of it."""


class Use(NamedTuple):
    """A Service that has a value."""

    value: str
    service: Object


class Words(NamedTuple):
    """How findings about one kind of value are told, and how its claims look."""

    unclaimed: Callable[[Use], Finding]
    """There is no claim."""
    misclaimed: Callable[[Use, Object], Finding]
    """The claim's owner does not use it."""
    blemished: Callable[[Use, Object], Finding | None]
    """The claim is the right one's; None if nothing else is wrong with it."""
    duplicate: Callable[[Use], Finding]
    """The value is another Service's."""


def parent_of(service: Object) -> ParentReference:
    """Return the reference that a Service's claims have."""
    return ParentReference("", "services", service.namespace, service.name)


def find_misheld(uses: Sequence[Use], claims: Mapping[str, Object], words: Words) -> Iterator[Finding]:
    """Yield what is wrong with values that are in use; `claims` by the value they are on."""
    users: dict[str, list[Object]] = {}
    for use in uses:
        users.setdefault(use.value, []).append(use.service)
    for value, services in users.items():
        yield from _find_misheld(value, services, claims.get(value), words)


def _find_misheld(value: str, services: Sequence[Object], claim: Object | None, words: Words) -> Iterator[Finding]:
    holder = 0
    if claim is None:
        yield words.unclaimed(Use(value, services[0]))
    else:
        parent = claim.view(Claim).parent
        holder = next((at for at, service in enumerate(services) if parent_of(service) == parent), -1)
        if holder < 0:
            holder = 0
            yield words.misclaimed(Use(value, services[0]), claim)
        elif (finding := words.blemished(Use(value, services[holder]), claim)) is not None:
            yield finding
    yield from (words.duplicate(Use(value, each)) for at, each in enumerate(services) if at != holder)
