"""Registers hooks of kube-apiserver whose work a component with another name does in a serving process.

Guarantees: monitoring that reads `/readyz/poststarthook/NAME` of kube-apiserver finds the same names. Each of these
hooks has finished when the component has finished its start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ctrlmgr.manager import Hooks

_BY_INFORMERS: Final = (
    "generic-apiserver-start-informers",
    "start-apiextensions-informers",
    "crd-informer-synced",
    "start-kube-aggregator-informers",
    "start-apiserver-admission-initializer",
)
_BY_BOOTSTRAP: Final = (
    "start-system-namespaces-controller",
    "start-kubernetes-service-cidr-controller",
    "start-service-ip-repair-controllers",
)
_BY_SERVER: Final = (
    "aggregator-reload-proxy-client-cert",
    "apiservice-discovery-controller",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
    "apiservice-registration-controller",
    "apiservice-status-local-available-controller",
    "start-legacy-token-tracking-controller",
    "storage-object-count-tracker-hook",
)
_OF_FAIRNESS: Final = ("priority-and-fairness-config-consumer", "priority-and-fairness-filter")
_WITHOUT_FAIRNESS: Final = ("max-in-flight-filter",)


def add_component_hooks(
    hooks: Hooks,
    *,
    informers: Callable[[], bool],
    bootstrap: Callable[[], bool],
    server: Callable[[], bool],
    is_fair: bool,
) -> None:
    """Register the hooks; each function returns whether the component has finished its start.

    `informers` are the caches, `bootstrap` creates the objects that every cluster has, and `server` serves requests and
    follows APIServices. `is_fair` says whether priority and fairness limit the requests.
    """
    filters = _OF_FAIRNESS if is_fair else _WITHOUT_FAIRNESS
    for names, is_finished in (
        (_BY_INFORMERS, informers),
        (_BY_BOOTSTRAP, bootstrap),
        ((*_BY_SERVER, *filters), server),
    ):
        for name in names:
            hooks.add_post_start(name, is_finished=is_finished)
