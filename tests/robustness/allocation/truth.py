"""Checks all events of a log: no two Services ever held the same address or node port.

Guarantees: the check shares no code with the allocators. The check reads the values of a Service from the fields of the
Service. A claim is an object of the resource for claims whose parentRef names a Service. At every revision, no value is
held by two Services. After every append, the claims equal the values of the Services, without any repair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from ctrlmgr.eventlog import Event, EventType

Holding = tuple[str, str]
"""An allocated value: the resource of the value's claim, and the name of the claim."""
Holder = tuple[str, str]
"""The identity of a Service: its namespace and name."""

ADDRESSES = "ipaddresses.networking.k8s.io"
PORTS = "nodeports.internal.ctrlmgr.io"


class ReturnedService(NamedTuple):
    """A Service in a response, with the Service's revision."""

    revision: int
    name: str
    holdings: frozenset[Holding]


class Ledger:
    """The owners and claims of values, computed from events; `wrong` lists violations."""

    def __init__(self) -> None:
        self.revisions = 0
        self.claimed = Counter[str]()
        """The number of claims, by resource."""
        self.wrong: list[str] = []
        self.holders: dict[Holding, set[Holder]] = {}
        self.claims: dict[Holding, Holder] = {}
        self.services: dict[Holder, frozenset[Holding]] = {}
        self.granted: dict[int, ReturnedService] = {}
        """The values of a Service after each of the Service's events."""

    def read(self, events: Iterable[Event]) -> Ledger:
        """Process a log from its beginning; return this object."""
        for _, append in groupby(events, key=lambda event: event.append_id):
            touched = set[Holding]()
            resources = set[str]()
            revision = 0
            for event in append:
                revision = event.revision
                self.revisions += 1
                resources.add(str(event.resource))
                touched |= self._fold(event)
            self._check(revision, touched)
            if touched and "services" not in resources:
                self.wrong.append(f"revision {revision}: a claim was changed, and no Service with it")
        return self

    def _fold(self, event: Event) -> set[Holding]:
        resource = str(event.resource)
        if resource == "services":
            return self._fold_service(event)
        if resource in (ADDRESSES, PORTS):
            return self._fold_claim((resource, event.object.name), event)
        return set()

    def _fold_service(self, event: Event) -> set[Holding]:
        holder = (event.object.namespace, event.object.name)
        before = self.services.pop(holder, frozenset())
        after = frozenset[Holding]()
        if event.type is not EventType.DELETED:
            after = self.services[holder] = held_by(event.object.to_dict())
        self.granted[event.revision] = ReturnedService(event.revision, event.object.name, after)
        for holding in before - after:
            self.holders[holding].discard(holder)
        for holding in after:
            holders = self.holders.setdefault(holding, set())
            holders.add(holder)
            if len(holders) > 1:
                self.wrong.append(f"revision {event.revision}: {holding[1]} is held by {sorted(holders)}")
        return set(before ^ after)

    def _fold_claim(self, holding: Holding, event: Event) -> set[Holding]:
        if event.type is EventType.DELETED:
            del self.claims[holding]
        else:
            parent = event.object.to_dict()["spec"]["parentRef"]
            self.claims[holding] = (parent.get("namespace", ""), parent["name"])
            self.claimed[holding[0]] += 1
        return {holding}

    def _check(self, revision: int, touched: Iterable[Holding]) -> None:
        for holding in sorted(touched):
            claim, holders = self.claims.get(holding), self.holders.get(holding) or set()
            if holders != ({claim} if claim else set()):
                self.wrong.append(f"revision {revision}: {holding[1]} is claimed by {claim}, held by {sorted(holders)}")

    def compare(self, granted: Iterable[ReturnedService]) -> Iterator[str]:
        """Yield the responses that contain a state of a Service which never existed in the log."""
        for each in granted:
            if self.granted.get(each.revision) != each:
                yield f"{each} was acknowledged, the log says {self.granted.get(each.revision)}"

    @property
    def used(self) -> set[Holding]:
        """Return the values that Services hold at the end."""
        return {holding for holding, holders in self.holders.items() if holders}


def held_by(service: Mapping[str, Any]) -> frozenset[Holding]:
    """Return the allocated values in the fields of a Service."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return frozenset()
    numbers = [port.get("nodePort") for port in spec.get("ports") or ()] + [spec.get("healthCheckNodePort")]
    addresses = {(ADDRESSES, address) for address in spec.get("clusterIPs") or () if address != "None"}
    return frozenset(addresses | {(PORTS, str(number)) for number in numbers if number})
