"""All admission plugins, in the order Kubernetes calls them, and which of them are on.

A plugin is one line of `PLUGINS` and a module of `ctrlmgr.admission.plugins`. The order is that of Kubernetes'
`pkg/kubeapiserver/options/plugins.go` (`AllOrderedPlugins`), as is what is on by default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ctrlmgr.admission.chain import Chain
from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.admission.plugins.default_ingress_class import DefaultIngressClass
from ctrlmgr.admission.plugins.default_storage_class import DefaultStorageClass
from ctrlmgr.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from ctrlmgr.admission.plugins.limit_ranger import LimitRanger
from ctrlmgr.admission.plugins.mutating_webhooks import MutatingAdmissionWebhook
from ctrlmgr.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from ctrlmgr.admission.plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from ctrlmgr.admission.plugins.pod_security import PodSecurity
from ctrlmgr.admission.plugins.pod_topology_labels import PodTopologyLabels
from ctrlmgr.admission.plugins.priority import Priority
from ctrlmgr.admission.plugins.runtime_class import RuntimeClass
from ctrlmgr.admission.plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from ctrlmgr.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from ctrlmgr.admission.plugins.validating_webhooks import ValidatingAdmissionWebhook
from ctrlmgr.admission.webhooks.hooks import MUTATING, VALIDATING
from ctrlmgr.api.resource import Resource
from ctrlmgr.authorization.authorizer import AlwaysAllow, Authorizer
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kinds import Kinds


class Parts(NamedTuple):
    """What plugins are made of."""

    clock: Clock
    kinds: Kinds
    authorizer: Authorizer
    """Who is asked whether a write's author may do what it takes besides."""


class Entry(NamedTuple):
    """One plugin that there is."""

    name: str
    make: Callable[[Parts], Plugin]
    is_default: bool = True


PLUGINS: Final[Sequence[Entry]] = (
    Entry("NamespaceLifecycle", lambda parts: NamespaceLifecycle()),
    Entry("LimitRanger", lambda parts: LimitRanger()),
    Entry("TaintNodesByCondition", lambda parts: TaintNodesByCondition()),
    Entry("PodSecurity", lambda parts: PodSecurity()),
    Entry("Priority", lambda parts: Priority()),
    Entry("DefaultTolerationSeconds", lambda parts: DefaultTolerationSeconds()),
    Entry("DefaultStorageClass", lambda parts: DefaultStorageClass()),
    Entry("StorageObjectInUseProtection", lambda parts: StorageObjectInUseProtection()),
    Entry("PersistentVolumeClaimResize", lambda parts: PersistentVolumeClaimResize()),
    Entry("RuntimeClass", lambda parts: RuntimeClass()),
    Entry("DefaultIngressClass", lambda parts: DefaultIngressClass()),
    Entry("PodTopologyLabels", lambda parts: PodTopologyLabels()),
    Entry("MutatingAdmissionWebhook", lambda parts: MutatingAdmissionWebhook(parts.kinds)),
    Entry("ValidatingAdmissionWebhook", lambda parts: ValidatingAdmissionWebhook(parts.kinds)),
)
"""Every plugin, in the order they are called."""


READ: Final[Sequence[Resource]] = (MUTATING, VALIDATING)
"""What plugins read for most writes; a process that keeps caches keeps them of these."""


def default_chain(kinds: Kinds, clock: Clock, authorizer: Authorizer | None = None) -> Chain:
    """Return the chain of an API server that nothing was configured for; without `authorizer` all may do everything."""
    parts = Parts(clock, kinds, authorizer or AlwaysAllow())
    return Chain([entry.make(parts) for entry in PLUGINS if entry.is_default], clock)
