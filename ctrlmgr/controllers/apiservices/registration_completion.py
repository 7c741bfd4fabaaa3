"""The check of `/readyz` that requires the APIServices which this server registers at its start to be available.

Source: kubernetes `pkg/controlplane/apiserver/aggregator.go` (`makeAPIServiceAvailableHealthCheck`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.apiservices.availability import is_available
from ctrlmgr.controllers.apiservices.desired_api_services import builtin
from ctrlmgr.engine.aggregated_groups import API_SERVICES
from ctrlmgr.engine.kind_registry import Group
from ctrlmgr.informer import Informers

CHECK = "autoregister-completion"


class Registration:
    """The APIServices of built-in groups that have not been available yet."""

    def __init__(self, informers: Informers, groups: Iterable[Group]) -> None:
        """Watch the APIServices of `groups`; the caller must do this before the informers sync."""
        self._services = informers.informer(API_SERVICES).lister
        self._pending = frozenset(builtin(groups))

    def problem(self) -> str | None:
        """Return the reason why the check fails; None once each APIService has been available."""
        if self._pending:
            self._pending = frozenset(filter(self._lacks, self._pending))
        return f"missing APIService: [{' '.join(sorted(self._pending))}]" if self._pending else None

    def _lacks(self, name: str) -> bool:
        service = self._services.get(Key("", name))
        return service is None or not is_available(service)
