"""Describes a server's kinds and admission as plain data, so that a worker process can create equal ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.escalation_admission import GuardedRights
from ctrlmgr.admission.leader_lease_protection import GuardedLeases
from ctrlmgr.admission.plugin_registry import new_chain
from ctrlmgr.admission.signer_protection import GuardedSigners
from ctrlmgr.api.resource import Key
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.authorization.rbac.rule_resolver import RbacIndex
from ctrlmgr.clock import Clock
from ctrlmgr.engine.admission_attributes import Admission
from ctrlmgr.engine.features.gates import is_on, switch
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.capabilities import CAPABILITIES
from ctrlmgr.settings import AdmissionSettings


@dataclass(frozen=True)
class Rights:
    """The authorizer and the index of roles, which determine users' rights."""

    authorizer: Authorizer
    index: RbacIndex


class Blueprint(NamedTuple):
    """The configuration of a server's kinds and admission.

    The default values are for tests: all default plugins except ServiceAccount.
    """

    admission: AdmissionSettings = AdmissionSettings(disable_plugins=("ServiceAccount",))
    service_ranges: tuple[str, str] | None = None
    """The address and node port ranges of Services, as in the settings; None for the default ranges."""
    apps: tuple[str, ...] = ()
    """The names of apps with admission functions, in the form that `framework.app_loading` reads."""
    guards_rights: bool = False
    """Whether the API server allows a user to grant only rights that the user has."""
    lease: Key | None = None
    """The Lease that only the control plane is allowed to write."""
    gates: tuple[tuple[str, bool], ...] = ()
    """The feature gates that the settings enable or disable explicitly, for `engine.features.gates`."""

    served: tuple[str, ...] = ()
    """The optional versions that are served, such as `resource.k8s.io/v1alpha3`; see `kinds.builtin`."""

    disabled: tuple[str, ...] = ()
    """The versions and resources that are not served, such as `batch/v1` or `apps/v1/deployments`."""

    def kinds(self) -> Kinds:
        """Set the feature gates, and return the built-in kinds that the blueprint describes."""
        switch(dict(self.gates))
        ranges = Ranges.parse(*self.service_ranges) if self.service_ranges is not None else None
        return builtin_kinds(ranges, served=self.served, disabled=self.disabled)

    def made(self, kinds: Kinds, rights: Rights, clock: Clock) -> Admission:
        """Return the admission for writes to `kinds`; raises `SettingsError` if an app cannot be loaded."""
        switch(dict(self.gates))
        CAPABILITIES.allow_privileged = self.admission.allow_privileged
        chain: Admission = new_chain(kinds, clock, self.admission, rights.authorizer, self._own())
        if self.lease is not None:
            chain = GuardedLeases(chain, self.lease)
        if is_on("PodCertificateRequest"):
            chain = GuardedSigners(chain, rights.authorizer)
        return GuardedRights(chain, rights.authorizer, rights.index) if self.guards_rights else chain

    def _own(self) -> list[Plugin]:
        if not self.apps:
            return []
        from ctrlmgr.framework.app_admission import plugin_of  # most servers have no apps
        from ctrlmgr.framework.app_loading import load_apps

        return [plugin_of(each) for app in load_apps(self.apps) for each in app.admissions]


DEFAULT: Final = Blueprint()
