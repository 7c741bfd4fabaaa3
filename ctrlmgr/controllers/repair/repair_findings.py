"""Compares the values in Services with the claims in the log, and returns findings.

Guarantees:
- Pure functions: the same listings give the same findings in the same order.
- A value of several Services belongs to the one that its claim names; without such a claim, to the first Service of the
  listing. There is never a finding against that one.
- An unused claim is a finding each time; `controllers.repair` counts how often it was found.

`address_findings` and `port_findings` read the values of a Service, and format findings with Kubernetes' messages.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.kinds.allocators.allocation_claims import Claim, ParentReference


class Action(enum.Enum):
    """The action of a repair for a finding."""

    REPORT = "report"
    """No action: an administrator must decide."""
    CLAIM = "claim"
    """Create the missing claim."""
    CORRECT = "correct"
    """Replace the existing claim with one of the Service."""
    RELEASE = "release"
    """Delete the claim, after it was found often enough."""


class Finding(NamedTuple):
    """One inconsistency."""

    problem: str
    """The category in Kubernetes' metrics: `repair`, `duplicate`, `outOfRange` …"""
    reason: str
    """The reason of the Event."""
    subject: Object
    """The Service or claim of the finding."""
    value: str
    """The address or port."""
    message: str
    action: Action = Action.REPORT
    claim: Object | None = None
    """The claim to create, the corrected one, or the one to release."""
    wrong: Object | None = None
    """The claim to replace."""
    silent: bool = False
    """Whether there is no Event, as in Kubernetes."""


class Use(NamedTuple):
    """A Service and its value."""

    value: str
    service: Object


class Words(NamedTuple):
    """Returns the findings about one kind of value."""

    unclaimed: Callable[[Use], Finding]
    """The claim is missing."""
    misclaimed: Callable[[Use, Object], Finding]
    """The claim names a Service that does not use the value."""
    blemished: Callable[[Use, Object], Finding | None]
    """The claim names the right Service; None if it is otherwise correct too."""
    duplicate: Callable[[Use], Finding]
    """The value belongs to another Service."""


def parent_of(service: Object) -> ParentReference:
    """Return the parent reference of a Service's claims."""
    return ParentReference("", "services", service.namespace, service.name)


def find_misheld(uses: Sequence[Use], claims: Mapping[str, Object], words: Words) -> Iterator[Finding]:
    """Yield the findings about used values; `claims` are by value."""
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
