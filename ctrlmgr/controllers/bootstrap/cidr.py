"""Keeps the ServiceCIDR `kubernetes`, which shows the configured ClusterIP ranges to clients.

Guarantees: the ServiceCIDR is created if it is missing, and becomes dual-stack if the settings are dual-stack; no other
change of its ranges is allowed. If its ranges equal the settings' ranges, the condition Ready of the ServiceCIDR is set
once. The condition Ready is never overwritten if another client set it to False. If the ServiceCIDR's ranges differ
from the settings, the difference is reported once, in the log and as an Event.

Source: Kubernetes' `pkg/controlplane/controller/defaultservicecidr`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.events.recorder import WARNING, Recorder
from ctrlmgr.errors import AlreadyExists, Conflict
from ctrlmgr.informer import Lister
from ctrlmgr.kinds.allocators.service_cidrs import READY, ServiceCIDR

log = structlog.get_logger(__name__)

NAME: Final = "kubernetes"
COMPONENT: Final = "kubernetes-service-cidr-controller"
INTERVAL: Final = 10.0
"""The number of seconds between two checks."""

_READY_MESSAGE: Final = "Kubernetes default Service CIDR is ready"


class Step(enum.Enum):
    """The next step for the ServiceCIDR."""

    NOTHING = "nothing"
    CREATE = "create"
    WIDEN = "widen"
    """The step that adds the range of the second IP family."""
    SET_READY = "set ready"
    WARN = "warn"


class Plan(NamedTuple):
    """The next step for the ServiceCIDR; if it is a warning, also the reason and message of the Event."""

    step: Step
    reason: str = ""
    message: str = ""


def plan(current: Object | None, cidrs: Sequence[str]) -> Plan:
    """Return the next step for the ServiceCIDR in its current state; `cidrs` are the settings' ranges."""
    if current is None:
        return Plan(Step.CREATE)
    view = current.view(ServiceCIDR)
    there = view.spec.cidrs or []
    if len(cidrs) == 2 and there == [cidrs[0]]:
        return Plan(Step.WIDEN)
    if current.is_terminating:
        return Plan(Step.NOTHING)
    if there != list(cidrs):
        message = f"The default ServiceCIDR {_go(there)} does not match the controller flag configurations {_go(cidrs)}"
        return Plan(Step.WARN, "KubernetesDefaultServiceCIDRInconsistent", message)
    ready = view.ready
    if ready is not None and ready.status == "False":
        return Plan(Step.WARN, ready.reason, f"Configuration matches, but {ready.message}")
    return Plan(Step.NOTHING if ready is not None and ready.status == "True" else Step.SET_READY)


def _go(texts: Sequence[str]) -> str:
    return f"[{' '.join(texts)}]"


class DefaultServiceCIDR:
    """Reconciles the default ServiceCIDR."""

    def __init__(self, service_cidrs: Lister, cidrs: Sequence[str], recorder: Recorder, *, clock: Clock) -> None:
        """Use `cidrs`, the ranges in the settings; the first range belongs to the default IP family."""
        self._service_cidrs = service_cidrs
        self._cidrs = list(cidrs)
        self._recorder = recorder
        self._clock = clock
        self._warned: set[str] = set()

    def sync(self, client: Client) -> None:
        """Perform the next step for the ServiceCIDR."""
        current = self._service_cidrs.get(Key("", NAME))
        planned = plan(current, self._cidrs)
        if current is None:
            self._create(client)
        elif planned.step is Step.WIDEN:
            log.info("making the default ServiceCIDR dual-stack", cidrs=self._cidrs)
            client.update(Object.from_dict({**current.to_dict(), "spec": {"cidrs": self._cidrs}}))
        elif planned.step is Step.SET_READY:
            self._set_ready(current, client)
        elif planned.step is Step.WARN and planned.reason not in self._warned:
            self._warned.add(planned.reason)
            log.warning("default ServiceCIDR differs from settings", message=planned.message)
            self._recorder.event(current, WARNING, planned.reason, planned.message)

    def _create(self, client: Client) -> None:
        head = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": NAME}}
        try:
            created = client.create(Object.from_dict({**head, "spec": {"cidrs": self._cidrs}}))
        except AlreadyExists:  # the cache was outdated, or another process was faster
            return
        self._set_ready(created, client)

    def _set_ready(self, current: Object, client: Client) -> None:
        fields: dict[str, Any] = current.to_dict()
        conditions = [each for each in (fields.get("status") or {}).get("conditions") or () if each["type"] != READY]
        ready = {
            "type": READY,
            "status": "True",
            "lastTransitionTime": format_time_seconds(self._clock.now()),
            "reason": "",
            "message": _READY_MESSAGE,
        }
        with suppress(Conflict):  # Another client wrote the ServiceCIDR first; the next check retries.
            client.update(Object.from_dict({**fields, "status": {"conditions": [*conditions, ready]}}), "status")
