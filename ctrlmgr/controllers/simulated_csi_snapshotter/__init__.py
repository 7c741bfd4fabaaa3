"""The snapshotter of the simulated CSI driver: takes snapshots of volumes, with `--nodes`."""

from __future__ import annotations

from ctrlmgr.api.resource import DEFINITIONS, Resource
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions
from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOT_CLASSES, SNAPSHOT_CONTENTS, SNAPSHOTS

_OWN = (SNAPSHOT_CONTENTS.plural, SNAPSHOTS.plural)

DESCRIPTOR = ControllerDescriptor(
    name="simulated-csi-snapshotter-controller",
    aliases=("simulated-csi-snapshotter",),
    component=DRIVER,
    account="simulated-csi-snapshotter",
    rules=(
        PolicyRule(("create", "delete", "update"), (SNAPSHOTS.group,), _OWN),
        PolicyRule(("update",), (SNAPSHOTS.group,), tuple(f"{each}/status" for each in _OWN)),
        PolicyRule(("create",), (SNAPSHOTS.group,), (SNAPSHOT_CLASSES.plural,)),
        PolicyRule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),
    ),
    does="takes snapshots of volumes of the simulated CSI driver if the VolumeSnapshot CRDs exist, with `--nodes`",
    watches=(
        Resource("", "persistentvolumeclaims"),
        Resource("", "persistentvolumes"),
        DEFINITIONS,
        SNAPSHOT_CLASSES,
        SNAPSHOT_CONTENTS,
        SNAPSHOTS,
    ),
    owns=(SNAPSHOT_CONTENTS,),
    builder="ctrlmgr.controllers.simulated_csi_snapshotter.controller:build",
    options=NoOptions,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""
