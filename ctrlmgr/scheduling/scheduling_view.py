"""Decodes the fields of stored pods and nodes that scheduling uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctrlmgr.scheduling.node_selection import NodeAffinity, Requirement
from ctrlmgr.scheduling.taints import Taint, Toleration


class Selector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A v1 LabelSelector; an empty selector matches all labels."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet all requirements of the selector."""
        if self.match_labels and not self.match_labels.items() <= labels.items():
            return False
        return all(each.matches(labels) for each in self.match_expressions or ())

    @property
    def is_empty(self) -> bool:
        """Return whether the selector has no requirements."""
        return not self.match_labels and not self.match_expressions


class AffinityTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 PodAffinityTerm."""

    topology_key: str = ""
    label_selector: Selector | None = None
    namespaces: list[str] | None = None
    namespace_selector: Selector | None = None


class WeightedTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 WeightedPodAffinityTerm."""

    weight: int = 0
    pod_affinity_term: AffinityTerm = AffinityTerm()


class TermsView(msgspec.Struct, frozen=True, gc=False):
    """A v1 PodAffinity or PodAntiAffinity."""

    required: list[AffinityTerm] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class AffinityView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 Affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: TermsView | None = None
    pod_anti_affinity: TermsView | None = None


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 TopologySpreadConstraint."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: Selector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class PortView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 ContainerPort that scheduling uses."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class ResourcesView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 ResourceRequirements that scheduling uses."""

    requests: dict[str, str] | None = None


class RestartRuleView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 ContainerRestartRule that scheduling uses."""

    action: str = ""


class ContainerView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 Container that scheduling uses."""

    image: str = ""
    ports: list[PortView] | None = None
    resources: ResourcesView = ResourcesView()
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRuleView] | None = None


class ClaimView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 PersistentVolumeClaimVolumeSource."""

    claim_name: str = ""


class VolumeView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 Volume that scheduling uses."""

    name: str = ""
    persistent_volume_claim: ClaimView | None = None
    ephemeral: dict[str, msgspec.Raw] | None = None
    gce_persistent_disk: dict[str, Any] | None = msgspec.field(default=None, name="gcePersistentDisk")
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None


class PodClaimView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodResourceClaim that scheduling uses."""

    name: str = ""
    resource_claim_name: str | None = None


class PodClaimStatusView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 PodResourceClaimStatus."""

    name: str = ""
    resource_claim_name: str | None = None


class Gate(msgspec.Struct, frozen=True, gc=False):
    """The API type v1 PodSchedulingGate."""

    name: str = ""


class GroupView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 PodSchedulingGroup."""

    pod_group_name: str = ""


class PodSpecView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodSpec that scheduling uses."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    host_network: bool = False
    host_users: bool | None = None
    containers: list[ContainerView] | None = None
    init_containers: list[ContainerView] | None = None
    overhead: dict[str, str] | None = None
    resources: ResourcesView | None = None
    node_selector: dict[str, str] | None = None
    affinity: AffinityView | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None
    scheduling_gates: list[Gate] | None = None
    volumes: list[VolumeView] | None = None
    resource_claims: list[PodClaimView] | None = None
    scheduling_group: GroupView | None = None


class ConditionView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 PodCondition that scheduling uses."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatusView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodStatus that scheduling uses."""

    phase: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    conditions: list[ConditionView] | None = None
    resource_claim_statuses: list[PodClaimStatusView] | None = None


class OwnerView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 OwnerReference that scheduling uses."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class PodMetaView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a pod's ObjectMeta that scheduling uses."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[OwnerView] | None = None


class PodView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Pod that scheduling uses."""

    metadata: PodMetaView = PodMetaView()
    spec: PodSpecView = PodSpecView()
    status: PodStatusView = PodStatusView()


class ImageView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type v1 ContainerImage."""

    names: list[str] | None = None
    size_bytes: int = 0


class NodeSpecView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 NodeSpec that scheduling uses."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatusView(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 NodeStatus that scheduling uses."""

    allocatable: dict[str, str] | None = None
    images: list[ImageView] | None = None
    declared_features: list[str] | None = None


class NodeMetaView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a node's ObjectMeta that scheduling uses."""

    name: str = ""
    labels: dict[str, str] | None = None


class NodeView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Node that scheduling uses."""

    metadata: NodeMetaView = NodeMetaView()
    spec: NodeSpecView = NodeSpecView()
    status: NodeStatusView = NodeStatusView()


decode_pod = msgspec.json.Decoder(PodView).decode
"""A decoder for the body of a pod."""
decode_node = msgspec.json.Decoder(NodeView).decode
"""A decoder for the body of a node."""
