"""Reads the leader migration: the controllers that run under a second Lease, which two controller managers share.

While controllers move from one program to another (kube-controller-manager, cloud-controller-manager), both programs
hold the migration Lease for these controllers, so that only one of them runs each.

Source: `k8s.io/controller-manager/pkg/leadermigration`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Settings
from ctrlmgr.settings.configuration_files import read_document

_COMPONENT: Final = "kube-controller-manager"
_ANY: Final = "*"
_VERSIONS: Final = tuple(f"controllermanager.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_ALWAYS_MAIN: Final = "serviceaccount-token-controller"
"""The controller that never runs under the migration Lease, because other controllers need its tokens."""


class _ControllerLeader(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    component: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    leader_name: str = ""
    resource_lock: Literal["leases"] = "leases"
    controller_leaders: Sequence[_ControllerLeader] = ()


class LeaderMigration(NamedTuple):
    """The name of the migration Lease, and the component that runs each of the controllers, by the controller's name.

    By default, only controllers of clouds migrate (`DefaultLeaderMigrationConfiguration`), which ctrlmgr does not have.
    """

    lease: str = "cloud-provider-extraction-migration"
    components: Mapping[str, str] = {}

    def is_foreign(self, controller: str) -> bool:
        """Return whether another component runs this controller."""
        return self.components.get(controller, _ANY) not in (_COMPONENT, _ANY)

    def is_main(self, controller: str) -> bool:
        """Return whether this process runs the controller under its main Lease."""
        return not (self.is_foreign(controller) or self.migrates(controller))

    def migrates(self, controller: str) -> bool:
        """Return whether this process runs the controller under the migration Lease."""
        return controller in self.components and not self.is_foreign(controller) and controller != _ALWAYS_MAIN


def leader_migration(settings: Settings) -> LeaderMigration | None:
    """Return the leader migration of the settings; None if it is off, as always without leader election.

    Raises `SettingsError` if the file cannot be used.
    """
    chosen = settings.leader_election
    if not (chosen.enabled and chosen.migration):
        return None
    return read_leader_migration(Path(chosen.migration_config)) if chosen.migration_config else LeaderMigration()


def read_leader_migration(file: Path) -> LeaderMigration:
    """Return the leader migration that a file configures; raises `SettingsError`."""
    document = read_document(file)
    found = document.read("LeaderMigrationConfiguration", _VERSIONS, _File)
    if not found.leader_name:
        raise document.refuse("leaderName must be set", "leaderName")
    for number, each in enumerate(found.controller_leaders):
        if missing := next((name for name in ("component", "name") if not getattr(each, name)), ""):
            raise document.refuse(f"{missing} must be set", "controllerLeaders", number)
    return LeaderMigration(found.leader_name, {each.name: each.component for each in found.controller_leaders})


def check_alone(settings: Settings) -> None:
    """Raise `SettingsError` if the settings ask a process that serves the API for a leader migration."""
    if settings.leader_election.migration:
        raise SettingsError(
            "--enable-leader-migration needs --kubeconfig: the controllers of a process that serves the API never "
            "run in another program"
        )
