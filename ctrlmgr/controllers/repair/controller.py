"""The repair controllers: correct the claims on addresses and node ports every three minutes.

Guarantees:

- A round of repairs reads one revision of the log. Therefore the round sees a concurrent change of a Service completely
  or not at all. Because the round reads the log and not a cache, it also finds manual changes in the database.
- The repair creates a missing claim. A claim with the wrong Service is replaced in one append, so there is no revision
  at which the value is free. A write of a claim succeeds only if the claim has not changed since it was read. After a
  conflict, the round starts again.
- IPAddresses are written through the API. Claims on node ports are written directly to the log, because no API contains
  them.
- An unused claim is released after three consecutive rounds have found that the claim is unused.
- Events report values that two Services have, values out of range, and invalid addresses. The repairs do not change
  Services.

Source: Kubernetes' `pkg/registry/core/service/{ipallocator,portallocator}/controller`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Key, Resource
from ctrlmgr.client import EngineClient, LogClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.events.recorder import WARNING, EventBroadcaster, Recorder
from ctrlmgr.controllers.repair.address_findings import describe_address, find_address_findings
from ctrlmgr.controllers.repair.port_findings import describe_port, find_port_findings
from ctrlmgr.controllers.repair.repair_findings import Action, Finding
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, CtrlmgrError, Expired, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.kinds.allocators.service_cidrs import SERVICE_CIDRS
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS, Ranges
from ctrlmgr.manager import Controller
from ctrlmgr.metrics import CLUSTER_IP_REPAIR, NODE_PORT_REPAIR, RepairMetrics

log = structlog.get_logger(__name__)

ADDRESSES_NAME: Final = "ipallocator-repair-controller"
PORTS_NAME: Final = "portallocator-repair-controller"
INTERVAL: Final = 180.0
"""The number of seconds between rounds (`--service-allocator-repair-interval` of Kubernetes' control plane: 3 min)."""
SIGHTINGS: Final = 3
"""The number of rounds that must find a leaked claim before it is released (`numRepairsBeforeLeakCleanup`)."""
ATTEMPTS: Final = 5
"""The maximum number of attempts of a round; a new attempt starts after a conflict with another writer."""

CLUSTER_IPS: Final = "cluster-ips"
NODE_PORT: Final = "node-ports"

_LOST: Final = (AlreadyExists, Conflict, NotFound)


class Outcome(enum.Enum):
    """The outcome of the repair of a finding."""

    REPORTED = "reported"
    REPAIRED = "repaired"
    RELEASED = "released"
    FLAGGED = "flagged"
    """A leaked claim that too few rounds have found so far, so it is not released yet."""


_OUTCOMES: Final = {
    Action.CLAIM: Outcome.REPAIRED,
    Action.CORRECT: Outcome.REPAIRED,
    Action.RELEASE: Outcome.RELEASED,
}


class HandledFinding(NamedTuple):
    """A finding, and its outcome in the current round."""

    finding: Finding
    outcome: Outcome


_Identity: TypeAlias = tuple[str, str]
C = TypeVar("C", EngineClient, LogClient)


def _identity(claim: Object) -> _Identity:
    """Return a claim's name and uid, which distinguish the claim from another claim with the same name."""
    return claim.name, claim.uid


class RepairInput(NamedTuple):
    """The Services, the claims of one kind and the ServiceCIDRs, all read at one revision."""

    services: Sequence[Object]
    claims: Sequence[Object]
    service_cidrs: Sequence[Object]


def read_listings(event_log: EventLog, claims: Resource) -> RepairInput:
    """Return the Services, the claims of one kind and the ServiceCIDRs, all read at one revision.

    If a compaction removes that revision during the read, the function reads a newer revision.
    """
    while True:
        at = event_log.head().revision
        try:
            return RepairInput(*(event_log.snapshot(each, at=at).objects for each in (SERVICES, claims, SERVICE_CIDRS)))
        except Expired:
            continue


class Claims(Protocol):
    """Writes claims of one kind.

    The methods raise `Conflict` or a similar error if another client has changed the claim.
    """

    def create(self, claim: Object) -> None:
        """Create a claim."""

    def correct(self, wrong: Object, claim: Object) -> None:
        """Replace a wrong claim with another."""

    def release(self, claim: Object) -> None:
        """Delete a claim."""


class AddressClaims:
    """Writes IPAddresses through the API.

    The parent of an IPAddress is immutable, so a wrong IPAddress is deleted and created again.
    """

    def __init__(self, client: EngineClient) -> None:
        """Write through `client`."""
        self._client = client

    def create(self, claim: Object) -> None:
        """Create a claim."""
        self._client.create(claim)

    def correct(self, wrong: Object, claim: Object) -> None:
        """Delete `wrong` and create `claim`, in one append to the log."""
        self._client.recreate(wrong, claim)

    def release(self, claim: Object) -> None:
        """Delete a claim, unless it has changed since it was read."""
        self._client.delete(claim, "Background")


class PortClaims:
    """Writes claims on node ports, which are in the log but in no API."""

    def __init__(self, client: LogClient) -> None:
        """Write through `client`."""
        self._client = client

    def create(self, claim: Object) -> None:
        """Create a claim."""
        self._client.create(claim)

    def correct(self, wrong: Object, claim: Object) -> None:
        """Replace the claim `wrong` by `claim`, which has the same name."""
        self._client.update(claim)

    def release(self, claim: Object) -> None:
        """Delete a claim, unless it has changed since it was read."""
        self._client.delete(claim)


class Repair(Generic[C]):
    """One of the two repairs, which stores how often it has found each leaked claim."""

    def __init__(
        self,
        name: str,
        describe: Callable[[str], str],
        claims: Resource,
        find: Callable[[RepairInput], Sequence[Finding]],
        writing: Callable[[C], Claims],
        event_log: EventLog,
        recorder: Recorder,
        metrics: RepairMetrics,
    ) -> None:
        """Create a repair that corrects the findings which `find` returns for the Services and `claims`.

        The function `describe` formats a value for Events. The function `writing` returns the writer of claims for a
        client.
        """
        self.name = name
        self.key = Key("", name)
        self._describe = describe
        self._claims = claims
        self._find = find
        self._writing: Callable[[C], Claims] = writing
        self._log = event_log
        self._recorder = recorder
        self._metrics = metrics
        # The number of consecutive rounds in which each claim was found unused.
        self._sightings: dict[_Identity, int] = {}

    def findings(self) -> Sequence[Finding]:
        """Return the inconsistencies in the current state of the log."""
        return self._find(read_listings(self._log, self._claims))

    def run(self, client: C) -> list[HandledFinding]:
        """Run one round and return its findings.

        Raises `Conflict` or a similar error after repeated conflicts, and the errors of `client` if a write fails.
        """
        done: list[HandledFinding] = []
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._round(self._writing(client), done)
            except _LOST as error:
                log.debug("restarting repair", repair=self.name, attempt=attempt, error=str(error))
                lost = error
        self._metrics.failed.inc()
        raise lost

    def _round(self, claims: Claims, done: list[HandledFinding]) -> list[HandledFinding]:
        """Handle all findings of an attempt.

        The argument `done` contains the findings that earlier attempts have repaired. Return these findings together
        with the findings of this attempt.
        """
        findings = self.findings()
        seen = self._seen(findings)
        left = []
        for finding in findings:
            if finding.claim is None or seen.get(_identity(finding.claim), SIGHTINGS) < SIGHTINGS:
                left.append(finding)
            else:
                self._act(finding, finding.claim, claims)
                done.append(self._tell(finding, _OUTCOMES[finding.action]))
        self._sightings = seen
        return done + [self._leave(finding) for finding in left]

    def _seen(self, findings: Iterable[Finding]) -> dict[_Identity, int]:
        """Return for each leaked claim in how many consecutive rounds, including this round, it was found."""
        leaks = [_identity(each.claim) for each in findings if each.action is Action.RELEASE and each.claim is not None]
        return {leak: self._sightings.get(leak, 0) + 1 for leak in leaks}

    def _act(self, finding: Finding, claim: Object, claims: Claims) -> None:
        try:
            match finding.action:
                case Action.CLAIM:
                    claims.create(claim)
                case Action.CORRECT:
                    claims.correct(finding.wrong or claim, claim)
                case Action.RELEASE:
                    claims.release(claim)
        except _LOST:
            raise
        except CtrlmgrError as error:
            self._metrics.found.labels("unknown").inc()
            self._metrics.failed.inc()
            if isinstance(error, ApiError):  # If the log itself failed, it would not accept an Event either.
                message = f"Unable to allocate {self._describe(finding.value)} due to an unknown error"
                action = event_action(finding)
                self._recorder.event(finding.subject, WARNING, "UnknownError", message, action=action)
            raise

    def _leave(self, finding: Finding) -> HandledFinding:
        """Handle a finding that cannot be corrected now, or that can never be corrected."""
        if finding.action is Action.REPORT:
            return self._tell(finding, Outcome.REPORTED)
        log.info("possibly leaked allocation, checking again later", repair=self.name, value=finding.value)
        return HandledFinding(finding, Outcome.FLAGGED)

    def _tell(self, finding: Finding, outcome: Outcome) -> HandledFinding:
        self._metrics.found.labels(finding.problem).inc()
        log.warning(
            "inconsistent allocation found", reason=finding.reason, outcome=outcome.value, message=finding.message
        )
        if not finding.silent:
            action = event_action(finding)
            self._recorder.event(finding.subject, WARNING, finding.reason, finding.message, action=action)
        return HandledFinding(finding, outcome)


def event_action(finding: Finding) -> str:
    """Return the action that Kubernetes' Event about a finding contains."""
    if finding.reason.startswith("Port"):
        return "PortAllocation"
    if finding.reason == "ClusterIPNotValid":
        return "ClusterIPValidation"
    return "IPAddressAllocation" if finding.subject.resource == IP_ADDRESSES else "ClusterIPAllocation"


def cluster_ip_repair(
    event_log: EventLog, ranges: Ranges, broadcaster: EventBroadcaster, client: EngineClient
) -> Repair[EngineClient]:
    """Return a repair of the ClusterIPs in `ranges` and in the ServiceCIDRs; Events are written through `client`."""

    def find(listings: RepairInput) -> Sequence[Finding]:
        return find_address_findings(listings.services, listings.claims, ranges, listings.service_cidrs)

    recorder = broadcaster.recorder(ADDRESSES_NAME, client, in_series=True)
    describe, metrics = describe_address, CLUSTER_IP_REPAIR
    return Repair(CLUSTER_IPS, describe, IP_ADDRESSES, find, AddressClaims, event_log, recorder, metrics)


def node_port_repair(
    event_log: EventLog, ranges: Ranges, broadcaster: EventBroadcaster, client: EngineClient
) -> Repair[LogClient]:
    """Return a repair of the node ports in `ranges`; Events are written through `client`."""

    def find(listings: RepairInput) -> Sequence[Finding]:
        return find_port_findings(listings.services, listings.claims, ranges.ports)

    recorder = broadcaster.recorder(PORTS_NAME, client, in_series=True)
    return Repair(NODE_PORT, describe_port, NODE_PORTS, find, PortClaims, event_log, recorder, NODE_PORT_REPAIR)


class _Reconciler(Generic[C]):
    """Runs a repair. The only key of this reconciler is the name of the repair; a timer enqueues this key."""

    def __init__(self, repair: Repair[C]) -> None:
        self._repair: Repair[C] = repair

    def reconcile(self, key: Key, client: C) -> None:
        self._repair.run(client)


def new_repair_controller(
    name: str, repair: Repair[C], client: C, event_log: EventLog, *, clock: Clock, random: Random
) -> Controller:
    """Build the controller of one repair; the caller must enqueue `Repair.key` every `INTERVAL` seconds."""
    return Controller(
        name,
        _Reconciler(repair),
        watches=[],
        client=client,
        log=event_log,
        clock=clock,
        random=random,
        max_retries=3,
    )
