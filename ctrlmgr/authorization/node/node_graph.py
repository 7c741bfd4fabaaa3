"""The relations of objects to nodes: the graph contains paths from secrets, claims and volumes through pods to nodes.

Guarantees:
- After `apply` or `reset`, the graph equals a new graph that is built from the same objects.
- The cost of a query depends on the paths to the queried object, not on the number of pods and nodes. The graph decodes
  the references of a node's pods at the first query for the node. Thus the graph never decodes pods that are deleted
  before this query.

| path | meaning |
|---|---|
| pod → node | the pod is bound to the node |
| secret, config map, claim, service account, resource claim → pod → node | the pod refers to the object |
| volume → claim → pod → node | the volume is bound to the claim |
| secret → volume → claim → pod → node | the volume's driver needs the secret |
| volume attachment, resource slice → node | the object names the node |

Source: `plugin/pkg/auth/authorizer/node/{graph,graph_populator}.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authorization.node.references import CLAIM, MIRROR, SECRET, Reference, pod_references, volume_secrets

PODS = Resource("", "pods")
VOLUMES = Resource("", "persistentvolumes")
ATTACHMENTS = Resource("storage.k8s.io", "volumeattachments")
SLICES = Resource("resource.k8s.io", "resourceslices")
POD_CERTIFICATES = Resource("certificates.k8s.io", "podcertificaterequests")

_ON_A_NODE = b'"nodeName"'
"""A byte sequence that occurs in the JSON of every pod that is bound to a node."""


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_claim_statuses: msgspec.Raw = msgspec.Raw()


class _Pod(msgspec.Struct, frozen=True, gc=False):
    """The fields of a pod that contain its node and its references."""

    spec: msgspec.Raw = msgspec.Raw()
    status: _Status = _Status()


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str | None = None


_decode = msgspec.json.Decoder(_Pod).decode
_decode_spec = msgspec.json.Decoder(_Spec).decode


class _PodDigest(NamedTuple):
    """A digest of a pod's node and references; it changes if the node or a reference changes."""

    spec: int
    claims: int
    is_mirror: bool


def _digests(pod: _Pod, body: bytes) -> _PodDigest:
    return _PodDigest(hash(bytes(pod.spec)), hash(bytes(pod.status.resource_claim_statuses)), MIRROR.encode() in body)


class NodeGraph:
    """The graph of the relations from objects to nodes.

    Only the thread that applies changes to the graph may use the graph.
    """

    def __init__(self, *, pod_certificates: bool = False) -> None:
        """Create an empty graph; `pod_certificates` sets whether the graph also contains pod certificate requests."""
        self.resources: tuple[Resource, ...] = (PODS, VOLUMES, ATTACHMENTS, SLICES)
        """The resources whose objects must be passed to the graph."""
        if pod_certificates:
            self.resources += (POD_CERTIFICATES,)
        # the node of each bound pod, volume attachment, resource slice and pod certificate request
        self._nodes: dict[tuple[Resource, Key], str] = {}
        self._digests: dict[Key, _PodDigest] = {}  # the digest of each bound pod
        self._unread: dict[str, dict[Key, Object]] = {}  # by node, the pods whose references are not decoded yet
        self._references: dict[Key, tuple[Reference, ...]] = {}  # the decoded references of each bound pod
        self._reached: dict[Reference, Counter[str]] = {}  # the number of pods by node
        self._claims: dict[str, Reference] = {}  # the claim of each bound volume
        self._volume_secrets: dict[str, tuple[Reference, ...]] = {}
        self._volumes_by_secret: dict[Reference, set[str]] = {}

    def reset(self, resource: Resource, objects: Iterable[Object]) -> None:
        """Replace all objects of a resource by `objects`."""
        if resource == VOLUMES:
            gone = [Key("", name) for name in self._claims]
        else:
            gone = [key for kind, key in self._nodes if kind == resource]
        for key in gone:
            self.apply(resource, key, None)
        for obj in objects:
            self.apply(resource, obj.key, obj)

    def apply(self, resource: Resource, key: Key, obj: Object | None) -> None:
        """Record the new state of an object; `None` means that the object was deleted."""
        if resource == PODS:
            self._apply_pod(key, obj)
        elif resource == VOLUMES:
            self._put_volume(key.name, obj.to_dict() if obj is not None else None)
        else:
            self._nodes.pop((resource, key), None)
            if obj is not None and (node := _node_of(obj.to_dict())):
                self._nodes[resource, key] = node

    def is_on(self, node: str, resource: Resource, key: Key) -> bool:
        """Return whether a pod, an attachment, a slice or a certificate request belongs to a node."""
        return self._nodes.get((resource, key)) == node

    def leads_to(self, node: str, reference: Reference) -> bool:
        """Return whether a pod of a node refers to an object, directly or through the claim of a volume."""
        self._read_pods(node)
        if node in self._reached.get(reference, ()):
            return True
        if reference.kind != SECRET:
            return False
        return any(self.uses_volume(node, volume) for volume in self._volumes_by_secret.get(reference, ()))

    def uses_volume(self, node: str, volume: str) -> bool:
        """Return whether a pod of the node refers to the claim to which a persistent volume is bound."""
        self._read_pods(node)
        claim = self._claims.get(volume)
        return claim is not None and node in self._reached.get(claim, ())

    def _apply_pod(self, key: Key, pod: Object | None) -> None:
        """Add a pod and the objects that the pod uses to the graph.

        Most changes of pods do not affect the graph, such as status updates and changes of pods that are not bound yet.
        """
        found = None if pod is None or not pod.mentions(_ON_A_NODE) else _decode(pod.body)
        digest = None if pod is None or found is None else _digests(found, pod.body)
        if pod is not None and digest is not None and digest == self._digests.get(key):
            unread = self._unread.get(self._nodes[PODS, key], {})
            if key in unread:
                unread[key] = pod  # releases the memory of the previous body
            return
        self._drop_pod(key)
        if pod is not None and digest is not None and found is not None:
            self._put_pod(key, pod, digest, _decode_spec(found.spec or b"{}").node_name or "")

    def _put_pod(self, key: Key, pod: Object, digest: _PodDigest, node: str) -> None:
        if node:
            self._digests[key] = digest
            self._nodes[PODS, key] = node
            self._unread.setdefault(node, {})[key] = pod

    def _read_pods(self, node: str) -> None:
        """Decode the references of the pods that were bound to a node since its last query."""
        for key, pod in self._unread.pop(node, {}).items():
            references = self._references[key] = tuple(dict.fromkeys(pod_references(pod.to_dict())))
            for reference in references:
                self._reached.setdefault(reference, Counter())[node] += 1

    def _drop_pod(self, key: Key) -> None:
        self._digests.pop(key, None)
        node = self._nodes.pop((PODS, key), "")
        if (unread := self._unread.get(node)) is not None and unread.pop(key, None) is not None and not unread:
            del self._unread[node]
        for reference in self._references.pop(key, ()):
            nodes = self._reached[reference]
            nodes[node] -= 1
            if not nodes[node]:
                del nodes[node]
            if not nodes:
                del self._reached[reference]

    def _put_volume(self, name: str, volume: Unstructured | None) -> None:
        for secret in self._volume_secrets.pop(name, ()):
            self._volumes_by_secret[secret].discard(name)
            if not self._volumes_by_secret[secret]:
                del self._volumes_by_secret[secret]
        self._claims.pop(name, None)
        claim = ((volume or {}).get("spec") or {}).get("claimRef")
        if volume is None or claim is None:
            return
        self._claims[name] = Reference(CLAIM, claim.get("namespace") or "", claim.get("name") or "")
        secrets = self._volume_secrets[name] = tuple(dict.fromkeys(volume_secrets(volume)))
        for secret in secrets:
            self._volumes_by_secret.setdefault(secret, set()).add(name)


def _node_of(fields: Unstructured) -> str:
    """Return the node that an attachment, a slice or a certificate request names."""
    node: str = (fields.get("spec") or {}).get("nodeName") or ""
    return node
