"""Compares the values in Services with the claims in the log, and returns findings.

Guarantees:
- All functions of this module are pure: the same listings give the same findings in the same order.
- If several Services have the same value, the value belongs to the Service to which the claim on the value refers. If
  the claim refers to none of the Services with the value, the value belongs to the first of these Services in the
  listing. The functions never return a finding against the Service to which a value belongs.
- An unused claim is a finding in every round. The package `controllers.repair` counts how often each claim was found
  unused.

The modules `address_findings` and `port_findings` read the values of a Service, and format findings with Kubernetes'
messages.
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
    """No action is taken, because an administrator must decide."""
    CLAIM = "claim"
    """The repair creates the missing claim."""
    CORRECT = "correct"
    """The existing claim is replaced by a claim of the Service."""
    RELEASE = "release"
    """The claim is deleted after it was found in enough rounds."""


class Finding(NamedTuple):
    """One inconsistency."""

    problem: str
    """The category of the finding in Kubernetes' metrics: `repair`, `duplicate`, `outOfRange` …"""
    reason: str
    """The reason in the Event about the finding."""
    subject: Object
    """The Service or claim that the finding is about."""
    value: str
    """The address or port that the finding is about."""
    message: str
    action: Action = Action.REPORT
    claim: Object | None = None
    """The claim to create, the corrected claim, or the claim to release."""
    wrong: Object | None = None
    """The wrong claim that must be replaced."""
    silent: bool = False
    """Whether no Event is recorded about the finding, as in Kubernetes."""


class ServiceValue(NamedTuple):
    """A value, such as an address or port, and a Service that uses the value."""

    value: str
    service: Object


class FindingTexts(NamedTuple):
    """The functions that return the findings about one kind of value.

    The docstring of each attribute describes when its function is called.
    """

    unclaimed: Callable[[ServiceValue], Finding]
    """The function that is called if the claim on a used value is missing."""
    misclaimed: Callable[[ServiceValue, Object], Finding]
    """The function that is called if the claim refers to a Service that does not use the value."""
    blemished: Callable[[ServiceValue, Object], Finding | None]
    """The function that is called if the claim refers to the right Service. The function returns None if all fields of
    the claim are correct.
    """
    duplicate: Callable[[ServiceValue], Finding]
    """The function that is called for each Service that uses the value although the value belongs to another Service.
    """


def parent_of(service: Object) -> ParentReference:
    """Return the parent reference that the claims of a Service have."""
    return ParentReference("", "services", service.namespace, service.name)


def find_misheld(uses: Sequence[ServiceValue], claims: Mapping[str, Object], words: FindingTexts) -> Iterator[Finding]:
    """Yield the findings about used values; `claims` contains the claims by value."""
    users: dict[str, list[Object]] = {}
    for use in uses:
        users.setdefault(use.value, []).append(use.service)
    for value, services in users.items():
        yield from _find_misheld(value, services, claims.get(value), words)


def _find_misheld(
    value: str, services: Sequence[Object], claim: Object | None, words: FindingTexts
) -> Iterator[Finding]:
    holder = 0
    if claim is None:
        yield words.unclaimed(ServiceValue(value, services[0]))
    else:
        parent = claim.view(Claim).parent
        holder = next((at for at, service in enumerate(services) if parent_of(service) == parent), -1)
        if holder < 0:
            holder = 0
            yield words.misclaimed(ServiceValue(value, services[0]), claim)
        elif (finding := words.blemished(ServiceValue(value, services[holder]), claim)) is not None:
            yield finding
    yield from (words.duplicate(ServiceValue(value, each)) for at, each in enumerate(services) if at != holder)
