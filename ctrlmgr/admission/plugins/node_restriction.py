"""NodeRestriction: a node may write only its own objects and its pods, and may request tokens only for its pods.

Guarantees: the plugin restricts only users that are nodes. When the plugin checks a pod or a node, it uses the stored
object, not the object in the request.

Source: `plugin/pkg/admission/noderestriction/admission.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Decision, Plugin
from ctrlmgr.admission.authorization_checks import author_of, verdict_of
from ctrlmgr.admission.certificate_subject import subject_of
from ctrlmgr.admission.node_restriction import decide
from ctrlmgr.api.resource import LEASES, NODES, PODS, Key, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user_names import NODE_PREFIX
from ctrlmgr.authorization import attributes as asked
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.authorization.node.node_authorizer import identify
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import InternalError, NotFound, StatusDetails

ACCOUNTS: Final = Resource("", "serviceaccounts")
CLAIMS: Final = Resource("", "persistentvolumeclaims")
VOLUMES: Final = Resource("", "persistentvolumes")
CSI_NODES: Final = Resource("storage.k8s.io", "csinodes")
CSI_DRIVERS: Final = Resource("storage.k8s.io", "csidrivers")
SLICES: Final = Resource("resource.k8s.io", "resourceslices")
REQUESTS: Final = Resource("certificates.k8s.io", "certificatesigningrequests")
POD_REQUESTS: Final = Resource("certificates.k8s.io", "podcertificaterequests")

_LEASE_NAMESPACE: Final = "kube-node-lease"
_KUBELET_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_WRITES: Final = (Verb.CREATE, Verb.UPDATE, Verb.DELETE)


class NodeRestriction(Plugin):
    """Restricts which objects the user of a node may write."""

    name: ClassVar[str] = "NodeRestriction"

    def __init__(self, authorizer: Authorizer) -> None:
        """Create the admission plugin.

        A node may get tokens for the audiences that its pods use. `authorizer` decides on all other audiences.
        """
        self._authorizer = authorizer
        self._checks: dict[Resource, Callable[[str, Attributes], Decision]] = {
            PODS: _pod,
            NODES: _node,
            CLAIMS: _claim,
            ACCOUNTS: self._account,
            LEASES: _lease,
            CSI_NODES: _csi_node,
            SLICES: _slice,
            REQUESTS: _request,
            POD_REQUESTS: _pod_request,
        }

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: writes to the resources that nodes write."""
        return resource in self._checks and operation in _WRITES

    def admit(self, attributes: Attributes) -> Decision:
        """Raise `Forbidden` if a node writes an object that does not belong to the node."""
        user = author_of(attributes)
        node = identify(user)
        if node is None:
            return None
        if not node:
            raise attributes.forbidden(f'could not determine node from user "{user.name}"')
        return self._checks[attributes.resource](node, attributes)

    def _account(self, node: str, attributes: Attributes) -> Decision:
        """Raise an error unless a node may get a token that is bound to a pod on the node."""
        if attributes.operation is not Verb.CREATE or attributes.subresource != "token":
            return None
        spec = attributes.fields.get("spec") or {}
        reference = spec.get("boundObjectRef") or {}
        pod = _stored(attributes, PODS, reference.get("name") or "")
        _refuse(attributes, decide.token_problem(node, reference, pod))
        if pod is None:
            raise _no_pod(reference["name"])
        audiences = spec.get("audiences") or [""]
        if len(audiences) > 1:
            raise attributes.forbidden("node may only request 0 or 1 audiences")
        return self._check_audience(attributes, pod, audiences[0])

    def _check_audience(self, attributes: Attributes, pod: Unstructured, audience: str) -> Operation[None]:
        if decide.mounts_token_for(pod, audience) or audience in _audiences_of_drivers(attributes, pod):
            return
        user, verb = author_of(attributes), "request-serviceaccounts-token-audience"
        question = asked.Attributes(verb, "", "", "v1", audience, "", attributes.namespace, attributes.name)
        if (yield from verdict_of(self._authorizer, user, question)).allows:
            return
        raise attributes.forbidden(
            f'audience "{audience}" not found in pod spec volume, {user.name} is not authorized to request tokens '
            "for this audience"
        )


def _pod(node: str, attributes: Attributes) -> None:
    match attributes.subresource, attributes.operation:
        case "", Verb.CREATE:
            own = _stored(attributes, NODES, node, cluster=True)
            uid = (own.get("metadata") or {}).get("uid") if own is not None else None
            _refuse(attributes, decide.mirror_pod_problem(node, attributes.fields, uid))
            if own is None:
                raise NotFound(f'node "{node}" not found', details=StatusDetails(name=node, kind="node"))
        case "", Verb.DELETE:
            if not decide.is_on(_existing_pod(attributes), node):
                raise attributes.forbidden(f'node "{node}" can only delete pods with spec.nodeName set to itself')
        case "", operation:
            words = f'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods'
            raise attributes.forbidden(words)
        case "status", Verb.UPDATE:
            _refuse(attributes, decide.pod_status_problem(node, attributes.fields, attributes.old or {}))
        case "eviction", Verb.CREATE:
            if not decide.is_on(_existing_pod(attributes), node):
                raise attributes.forbidden(f"node {node} can only evict pods with spec.nodeName set to itself")
        case (("status" | "eviction"), operation):
            raise attributes.forbidden(f'unexpected operation "{operation}"')
        case part, _:
            words = f"unexpected pod subresource \"{part}\", only 'status' and 'eviction' are allowed"
            raise attributes.forbidden(words)


def _node(node: str, attributes: Attributes) -> None:
    if attributes.name != node:
        raise attributes.forbidden(f'node "{node}" is not allowed to modify node "{attributes.name}"')
    if attributes.operation is not Verb.DELETE:
        _refuse(attributes, decide.node_problem(node, attributes.fields, attributes.old))


def _claim(node: str, attributes: Attributes) -> None:
    if attributes.subresource != "status":
        raise attributes.forbidden("may only update PVC status")
    if attributes.operation is not Verb.UPDATE:
        raise attributes.forbidden(f'unexpected operation "{attributes.operation}"')
    _refuse(attributes, decide.claim_status_problem(node, attributes.fields, attributes.old or {}))


def _lease(node: str, attributes: Attributes) -> None:
    if attributes.namespace != _LEASE_NAMESPACE:
        raise attributes.forbidden(f'can only access leases in the "{_LEASE_NAMESPACE}" system namespace')
    if attributes.name != node:
        raise attributes.forbidden("can only access node lease with the same name as the requesting node")


def _csi_node(node: str, attributes: Attributes) -> None:
    if attributes.name != node:
        raise attributes.forbidden("can only access CSINode with the same name as the requesting node")


def _slice(node: str, attributes: Attributes) -> None:
    subject = attributes.old if attributes.operation is Verb.DELETE else attributes.object
    if attributes.operation is not Verb.UPDATE and not decide.is_on(subject or {}, node):
        verb = attributes.operation.lower()
        raise attributes.forbidden(f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def _request(node: str, attributes: Attributes) -> None:
    if attributes.operation is not Verb.CREATE:
        return
    spec = attributes.fields.get("spec") or {}
    if spec.get("signerName") not in _KUBELET_SIGNERS:
        return
    subject = subject_of(spec.get("request") or "")
    if subject is None:
        raise attributes.forbidden("unable to parse csr: PEM block type must be CERTIFICATE REQUEST")
    if subject.common_name != f"{NODE_PREFIX}{node}":
        raise attributes.forbidden(f"can only create a node CSR with CN={NODE_PREFIX}{node}")


def _pod_request(node: str, attributes: Attributes) -> None:
    """Raise an error unless a node requests a certificate for one of its pods."""
    if not is_on("PodCertificateRequest"):
        raise attributes.forbidden("PodCertificateRequest feature gate is disabled")
    if attributes.operation is not Verb.CREATE:
        raise attributes.forbidden(f"unexpected operation {attributes.operation}")
    if attributes.subresource:
        raise attributes.forbidden(f"unexpected subresource {attributes.subresource}")
    spec = attributes.fields.get("spec") or {}
    pod = f"{attributes.namespace}/{spec.get('podName') or ''}"
    _refuse(attributes, decide.other_node_problem(node, spec))
    _check_uid(decide.node_uid_problem(pod, spec, _named(attributes, NODES, spec, "node", "nodeName")))
    found = _named(attributes, PODS, spec, "pod", "podName")
    _check_uid(decide.pod_uid_problem(pod, spec, found))
    _refuse(attributes, decide.pod_request_problem(pod, spec, found))
    _check_uid(
        decide.account_uid_problem(
            pod, spec, _named(attributes, ACCOUNTS, spec, "service account", "serviceAccountName")
        )
    )


def _named(attributes: Attributes, resource: Resource, spec: Unstructured, noun: str, field: str) -> Unstructured:
    """Return a stored object that a request for a pod's certificate names; raises an error if it does not exist."""
    name: str = spec.get(field) or ""
    found = _stored(attributes, resource, name, cluster=resource == NODES)
    if found is None:
        shown = name if resource == NODES else f"{attributes.namespace}/{name}"
        kind = noun.replace(" ", "")
        words = f'while retrieving {noun} "{shown}" named in the PodCertificateRequest: {kind} "{name}" not found'
        raise InternalError(words)
    return found


def _check_uid(problem: str) -> None:
    """Raise an error with which the node retries, because the server's state may be older than the node's state."""
    if problem:
        raise InternalError(problem)


def _existing_pod(attributes: Attributes) -> Unstructured:
    name = attributes.name or attributes.called()
    pod = _stored(attributes, PODS, name)
    if pod is None:
        raise _no_pod(name)
    return pod


def _stored(attributes: Attributes, resource: Resource, name: str, *, cluster: bool = False) -> Unstructured | None:
    found = attributes.view.get(resource, Key("" if cluster else attributes.namespace, name))
    return found.to_dict() if found is not None else None


def _no_pod(name: str) -> NotFound:
    return NotFound(f'pod "{name}" not found', details=StatusDetails(name=name, kind="pod"))


def _refuse(attributes: Attributes, problem: str) -> None:
    if problem:
        raise attributes.forbidden(problem)


def _audiences_of_drivers(attributes: Attributes, pod: Unstructured) -> Iterator[str]:
    """Yield the audiences of the tokens that the CSI drivers of a pod's volumes request."""
    for driver in filter(None, _drivers(attributes, pod)):
        found = _stored(attributes, CSI_DRIVERS, driver, cluster=True)
        for request in ((found or {}).get("spec") or {}).get("tokenRequests") or ():
            yield request.get("audience") or ""


def _drivers(attributes: Attributes, pod: Unstructured) -> Iterator[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        yield decide.inline_driver(volume)
    for name in decide.claims_of(pod):
        claim = _stored(attributes, CLAIMS, name)
        volume = ((claim or {}).get("spec") or {}).get("volumeName") or ""
        found = _stored(attributes, VOLUMES, volume, cluster=True) if volume else None
        yield decide.inline_driver((found or {}).get("spec") or {})
