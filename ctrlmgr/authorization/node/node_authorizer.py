"""The Node authorizer: a kubelet may read the objects that its own pods need, and write its own objects.

Guarantees: the authorizer has no opinion on users that are not nodes. The Node authorizer never denies a request, so
RBAC can allow further requests of a node.

Source: `plugin/pkg/auth/authorizer/node/node_authorizer.go`, `pkg/auth/nodeidentifier/default.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctrlmgr.api.resource import Key
from ctrlmgr.authentication.user import User
from ctrlmgr.authentication.user_names import NODE_PREFIX, NODES
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Decision, Immediate, RuleListing, Verdict
from ctrlmgr.authorization.node.node_graph import ATTACHMENTS, POD_CERTIFICATES, PODS, SLICES, NodeGraph
from ctrlmgr.authorization.node.references import ACCOUNT, CLAIM, CONFIG_MAP, RESOURCE_CLAIM, SECRET, Reference
from ctrlmgr.authorization.rbac.policy_rules import CompiledRule, PolicyRule, first_allowing

_LEASES = "kube-node-lease"
_OWN_VERBS = frozenset({"get", "create", "update", "patch", "delete"})
_READ = frozenset({"get", "list", "watch"})


def identify(user: User) -> str | None:
    """Return the name of the node that a user represents; None if the user is not a node.

    The result is an empty string if the user is a node but its user name contains no node name.
    """
    if not user.name.startswith(NODE_PREFIX) or NODES not in user.groups:
        return None
    return user.name.removeprefix(NODE_PREFIX)


class NodeAuthorizer(Immediate):
    """Authorizes the requests of nodes."""

    def __init__(self, graph: NodeGraph, rules: Sequence[PolicyRule]) -> None:
        """Create the authorizer: `graph` relates objects to nodes; every node also has the rights in `rules`."""
        self._graph = graph
        self._rules = tuple(CompiledRule(rule) for rule in rules)
        self._special: dict[tuple[str, str], Callable[[str, Attributes], Verdict]] = {
            ("", "secrets"): lambda node, attributes: self._read(node, SECRET, attributes),
            ("", "configmaps"): lambda node, attributes: self._read(node, CONFIG_MAP, attributes),
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._volume,
            ("resource.k8s.io", "resourceclaims"): lambda node, attributes: self._get(node, RESOURCE_CLAIM, attributes),
            ("storage.k8s.io", "volumeattachments"): self._attachment,
            ("", "serviceaccounts"): self._account,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("", "nodes"): _node,
            ("", "pods"): self._pod,
        }
        if any(POD_CERTIFICATES.plural in rule.resources for rule in rules):
            self._special[POD_CERTIFICATES.group, POD_CERTIFICATES.plural] = self._pod_certificate

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        """Return whether a node may make the request."""
        node = identify(user)
        if node is None:
            return NO_OPINION
        if not node:
            return _because(f'unknown node for user "{user.name}"')
        if attributes.is_resource:
            decide = self._special.get((attributes.group, attributes.resource))
            if decide is not None:
                return decide(node, attributes)
        return ALLOWED if first_allowing(self._rules, attributes) is not None else NO_OPINION

    def rules(self, user: User, namespace: str) -> RuleListing:
        """Return an incomplete listing for nodes, because rules cannot express the rights of nodes."""
        if identify(user) is None:
            return RuleListing()
        return RuleListing((), incomplete=True, error="node authorizer does not support user rule resolution")

    def _read(self, node: str, kind: str, attributes: Attributes) -> Verdict:
        if attributes.verb not in _READ:
            return _because("can only read resources of this type")
        if attributes.subresource:
            return _because("cannot read subresource")
        if not attributes.namespace:
            return _because("can only read namespaced object of this type")
        return self._related(node, kind, attributes)

    def _get(self, node: str, kind: str, attributes: Attributes) -> Verdict:
        return _refuse_but_get(attributes) or self._related(node, kind, attributes)

    def _related(self, node: str, kind: str, attributes: Attributes) -> Verdict:
        related = self._graph.leads_to(node, Reference(kind, attributes.namespace, attributes.name))
        return _if_related(node, attributes, related)

    def _claim(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.subresource != "status":
            return self._get(node, CLAIM, attributes)
        if attributes.verb not in ("update", "patch"):
            return _because("can only get/update/patch this type")
        return self._related(node, CLAIM, attributes)

    def _volume(self, node: str, attributes: Attributes) -> Verdict:
        return _refuse_but_get(attributes) or _if_related(
            node, attributes, self._graph.uses_volume(node, attributes.name)
        )

    def _attachment(self, node: str, attributes: Attributes) -> Verdict:
        own = self._graph.is_on(node, ATTACHMENTS, Key("", attributes.name))
        return _refuse_but_get(attributes) or _if_related(node, attributes, own)

    def _account(self, node: str, attributes: Attributes) -> Verdict:
        """Allow reads of service accounts, which image credential providers need, and creations of tokens for pods."""
        if attributes.verb == "get" and not attributes.subresource:
            return self._read(node, ACCOUNT, attributes)
        if attributes.verb != "create" or not attributes.name:
            return _because("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _because("can only create token subresource of serviceaccount")
        return self._related(node, ACCOUNT, attributes)

    def _slice(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.subresource:
            return _because("cannot authorize ResourceSlice subresources")
        match attributes.verb:
            case "create":  # NodeRestriction checks that the object belongs to this node
                return ALLOWED
            case "get" | "update" | "patch" | "delete":
                return _if_related(node, attributes, self._graph.is_on(node, SLICES, Key("", attributes.name)))
            case "watch" | "list" | "deletecollection":
                if _selects(attributes, "spec.nodeName", node):
                    return ALLOWED
                return _because("can only list/watch/deletecollection resourceslices with nodeName field selector")
        verbs = "get, watch, list, create, update, patch, delete, deletecollection"
        return _because(f"only the following verbs are allowed for a ResourceSlice: {verbs}")

    def _pod_certificate(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.subresource:
            return _because("nodes may not access the status subresource of PodCertificateRequests")
        match attributes.verb:
            case "create":  # NodeRestriction checks that the request belongs to this node
                return ALLOWED
            case "get":
                own = self._graph.is_on(node, POD_CERTIFICATES, Key(attributes.namespace, attributes.name))
                return _if_related(node, attributes, own)
            case "list" | "watch":
                if _selects(attributes, "spec.nodeName", node):
                    return ALLOWED
                return _because("can only list/watch podcertificaterequests with nodeName field selector")
        return _because(f"nodes may not {attributes.verb} podcertificaterequests")

    def _pod(self, node: str, attributes: Attributes) -> Verdict:
        match (attributes.subresource, attributes.verb):
            case ("", "get"):
                return _if_related(node, attributes, self._has_pod(node, attributes))
            case ("", "list" | "watch"):
                if _selects(attributes, "spec.nodeName", node):
                    return ALLOWED
                if attributes.name:
                    return _if_related(node, attributes, self._has_pod(node, attributes))
                return _because("can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return ALLOWED  # NodeRestriction checks that the object belongs to this node
        return NO_OPINION

    def _has_pod(self, node: str, attributes: Attributes) -> bool:
        return self._graph.is_on(node, PODS, Key(attributes.namespace, attributes.name))


def _because(reason: str) -> Verdict:
    return Verdict(Decision.NO_OPINION, reason)


def _refuse_but_get(attributes: Attributes) -> Verdict | None:
    if attributes.verb != "get":
        return _because("can only get individual resources of this type")
    return _because("cannot get subresource") if attributes.subresource else None


def _if_related(node: str, attributes: Attributes, related: bool) -> Verdict:
    if not attributes.name:
        return _because("No Object name found")
    return ALLOWED if related else _because(f"no relationship found between node '{node}' and this object")


def _selects(attributes: Attributes, field: str, value: str) -> bool:
    return any(each.key == field and each.operator == "In" and each.values == (value,) for each in attributes.fields)


def _lease(node: str, attributes: Attributes) -> Verdict:
    if attributes.verb not in _OWN_VERBS:
        return _because("can only get, create, update, patch, or delete a node lease")
    if attributes.namespace != _LEASES:
        return _because(f'can only access leases in the "{_LEASES}" system namespace')
    if attributes.verb != "create" and attributes.name != node:
        return _because("can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node: str, attributes: Attributes) -> Verdict:
    if attributes.verb not in _OWN_VERBS:
        return _because("can only get, create, update, patch, or delete a CSINode")
    if attributes.subresource:
        return _because("cannot authorize CSINode subresources")
    if attributes.verb != "create" and attributes.name != node:
        return _because("can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _node(node: str, attributes: Attributes) -> Verdict:
    match (attributes.subresource, attributes.verb):
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return ALLOWED  # NodeRestriction checks that the object is the node's own
        case ("", "get" | "list" | "watch"):
            if attributes.name == node:
                return ALLOWED
            if not attributes.name:
                return _because(f"node '{node}' cannot read all nodes, only its own Node object")
            return _because(f"node '{node}' cannot read '{attributes.name}', only its own Node object")
    return NO_OPINION
