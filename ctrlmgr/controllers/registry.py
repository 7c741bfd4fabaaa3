"""The registry of all controllers, with one line for each controller.

The import of this module declares the controllers' options as settings, but does not load the code of any controller.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ctrlmgr.controllers import (
    bootstrap_signer,
    certificatesigningrequest_approving,
    certificatesigningrequest_cleaner,
    certificatesigningrequest_signing,
    clusterrole_aggregation,
    clustertrustbundle_publisher,
    cronjob,
    daemonset,
    deployment,
    device_taint_eviction,
    disruption,
    endpoints,
    endpointslice,
    endpointslice_mirroring,
    ephemeral_volume,
    garbage_collector,
    horizontal_pod_autoscaler,
    job,
    kubelet_serving_approving,
    legacy_serviceaccount_token_cleaner,
    namespace,
    node_ipam,
    node_lifecycle,
    persistentvolume_attach_detach,
    persistentvolume_binder,
    persistentvolume_expander,
    persistentvolume_protection,
    persistentvolumeclaim_protection,
    pod_garbage_collector,
    podcertificaterequest_cleaner,
    podgroup_protection,
    replicaset,
    replicationcontroller,
    resourceclaim,
    resourcepoolstatusrequest,
    resourcequota,
    root_ca_certificate_publisher,
    scheduler,
    selinux_warning,
    service_cidr,
    serviceaccount,
    serviceaccount_token,
    simulated_csi_attacher,
    simulated_csi_provisioner,
    simulated_csi_resizer,
    simulated_csi_snapshotter,
    simulated_load_balancer,
    simulated_nodes,
    statefulset,
    storage_version_garbage_collector,
    storage_version_migrator,
    taint_eviction,
    token_cleaner,
    ttl,
    ttl_after_finished,
    validatingadmissionpolicy_status,
    volumeattributesclass_protection,
)
from ctrlmgr.controllers.descriptor import SECTION, ControllerDescriptor
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import declare

ALL: list[ControllerDescriptor[Any]] = [
    serviceaccount_token.DESCRIPTOR,
    bootstrap_signer.DESCRIPTOR,
    certificatesigningrequest_approving.DESCRIPTOR,
    certificatesigningrequest_cleaner.DESCRIPTOR,
    certificatesigningrequest_signing.DESCRIPTOR,
    kubelet_serving_approving.DESCRIPTOR,
    podcertificaterequest_cleaner.DESCRIPTOR,
    legacy_serviceaccount_token_cleaner.DESCRIPTOR,
    token_cleaner.DESCRIPTOR,
    clusterrole_aggregation.DESCRIPTOR,
    cronjob.DESCRIPTOR,
    daemonset.DESCRIPTOR,
    deployment.DESCRIPTOR,
    disruption.DESCRIPTOR,
    endpoints.DESCRIPTOR,
    endpointslice.DESCRIPTOR,
    garbage_collector.DESCRIPTOR,
    horizontal_pod_autoscaler.DESCRIPTOR,
    job.DESCRIPTOR,
    endpointslice_mirroring.DESCRIPTOR,
    namespace.DESCRIPTOR,
    node_ipam.DESCRIPTOR,
    node_lifecycle.DESCRIPTOR,
    pod_garbage_collector.DESCRIPTOR,
    validatingadmissionpolicy_status.DESCRIPTOR,
    replicaset.DESCRIPTOR,
    replicationcontroller.DESCRIPTOR,
    resourceclaim.DESCRIPTOR,
    resourcepoolstatusrequest.DESCRIPTOR,
    device_taint_eviction.DESCRIPTOR,
    resourcequota.DESCRIPTOR,
    root_ca_certificate_publisher.DESCRIPTOR,
    clustertrustbundle_publisher.DESCRIPTOR,
    scheduler.DESCRIPTOR,
    selinux_warning.DESCRIPTOR,
    serviceaccount.DESCRIPTOR,
    service_cidr.DESCRIPTOR,
    simulated_csi_attacher.DESCRIPTOR,
    simulated_csi_provisioner.DESCRIPTOR,
    simulated_csi_resizer.DESCRIPTOR,
    simulated_csi_snapshotter.DESCRIPTOR,
    simulated_load_balancer.DESCRIPTOR,
    simulated_nodes.DESCRIPTOR,
    statefulset.DESCRIPTOR,
    storage_version_garbage_collector.DESCRIPTOR,
    storage_version_migrator.DESCRIPTOR,
    taint_eviction.DESCRIPTOR,
    ttl.DESCRIPTOR,
    ttl_after_finished.DESCRIPTOR,
    persistentvolume_binder.DESCRIPTOR,
    persistentvolume_attach_detach.DESCRIPTOR,
    persistentvolume_expander.DESCRIPTOR,
    ephemeral_volume.DESCRIPTOR,
    persistentvolumeclaim_protection.DESCRIPTOR,
    persistentvolume_protection.DESCRIPTOR,
    volumeattributesclass_protection.DESCRIPTOR,
    podgroup_protection.DESCRIPTOR,
]
"""The controllers in the order in which they start; controllers with `starts_first` start before these."""

ELSEWHERE: Mapping[str, str] = {
    "service-lb-controller": "service",
    "node-route-controller": "route",
    "cloud-node-lifecycle-controller": "cloud-node-lifecycle",
}
"""Names and aliases of controllers that need a cloud. `--controllers` accepts and ignores these names, as
kube-controller-manager does.
"""


class Enabled(NamedTuple):
    """The selection of controllers that run, and warnings about the setting `controllers`."""

    descriptors: tuple[ControllerDescriptor[Any], ...]
    warnings: tuple[str, ...] = ()


def add(descriptor: ControllerDescriptor[Any]) -> None:
    """Add a user's controller, before settings are loaded; raises ValueError if a name is already in use."""
    by_name([*ALL, descriptor])
    declare(descriptor.options, SECTION)
    ALL.append(descriptor)


def by_name(descriptors: Iterable[ControllerDescriptor[Any]] = ALL) -> dict[str, ControllerDescriptor[Any]]:
    """Return the controllers by name, in start order; raises ValueError if two controllers have the same name."""
    found: dict[str, ControllerDescriptor[Any]] = {}
    for each in sorted(descriptors, key=lambda each: not each.starts_first):
        if each.name in found:
            raise ValueError(f"two controllers are called {each.name}")
        found[each.name] = each
    return found


def enabled(desired: Iterable[str], descriptors: Iterable[ControllerDescriptor[Any]] = ALL) -> Enabled:
    """Return the controllers that run; raises `SettingsError` if the settings contain an unknown name.

    Each entry of the setting is `name`, `-name` or `*`. A name in an entry may be an alias or a former name, and may
    omit `-controller`. An explicit name of a controller overrides the star. If several entries name a controller, the
    first entry counts. The star does not include controllers that are off by default (kube-controller-manager's
    `IsControllerEnabled`).
    """
    known = by_name(descriptors)
    aliases = {alias: name for name, each in known.items() for alias in (*each.aliases, *each.former_names)}
    names = {name.removesuffix("-controller"): name for name in known} | aliases
    former = {alias for each in known.values() for alias in each.former_names}
    choices: dict[str, bool] = {}
    warnings = []
    for entry in desired:
        alias = entry.removeprefix("-")
        if entry == "*" or alias in ELSEWHERE or alias in ELSEWHERE.values():
            choices.setdefault(alias, True)
            continue
        name = names.get(alias, alias)
        if name not in known:
            raise SettingsError(_unknown(alias, [*known, *aliases]))
        if alias in former:
            warnings.append(f"controllers.enabled: {alias} is called {name} now")
        choices.setdefault(name, entry == alias)
    star = "*" in choices
    running = (each for name, each in known.items() if choices.get(name, star and each.enabled_by_default))
    return Enabled(tuple(running), tuple(warnings))


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
    return f"controllers.enabled: there is no controller {name!r}; {hint}"


def _declare_options() -> None:
    for each in ALL:
        declare(each.options, SECTION)


_declare_options()
