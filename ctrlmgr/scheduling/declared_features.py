"""Infers the features that a node must declare in its status for a new pod, as NodeDeclaredFeatures does.

Source: `component-helpers/nodedeclaredfeatures`. The admission plugin NodeDeclaredFeatureValidator checks the features
that only updates of pods require.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.scheduling.scheduling_view import PodSpecView

PLUGIN: Final = "NodeDeclaredFeatures"
UNSATISFIED: Final = "node(s) didn't match Pod's required features"
RESTARTS_ALL: Final = "RestartAllContainersOnContainerExits"
HOST_NETWORK_USERS: Final = "UserNamespacesHostNetworkSupport"


def features_of(spec: PodSpecView) -> frozenset[str]:
    """Return the features that a pod with this spec requires."""
    found = {RESTARTS_ALL} if _restarts_all(spec) else set()
    if spec.host_network and spec.host_users is False:
        found.add(HOST_NETWORK_USERS)
    return frozenset(found)


def _restarts_all(spec: PodSpecView) -> bool:
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return any(rule.action == "RestartAllContainers" for each in containers for rule in each.restart_policy_rules or ())
