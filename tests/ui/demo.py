"""Writes the log of the cluster of a small shop: rollouts, a failing node, changes of leaders.

The revisions in the log are the same in every run. The log contains each write of a controller with its reconcile and
all triggers, as real controllers store them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.eventlog import Author, Cause, EventLog, EventType, Fence, Outcome, Proposal
from ctrlmgr.testing import FakeClock

START = parse_time("2026-01-02T08:00:00.000001Z")
LEASE = "leases.coordination.k8s.io/kube-system/kube-controller-manager"
NODES = ("node-a", "node-b", "node-c")
ALICE, BOB = Author("alice", "kubectl/v1.36.2"), Author("bob", "kubectl/v1.36.2")
ARGO = Author("argocd", "argocd-application-controller/v3.2")


class App(NamedTuple):
    """An app of the shop: a Deployment behind a Service."""

    namespace: str
    name: str
    replicas: int
    port: int


APPS = (
    App("shop", "web", 4, 8080),
    App("shop", "cart", 3, 8080),
    App("shop", "checkout", 3, 9090),
    App("shop", "search", 2, 9200),
    App("payments", "gateway", 3, 8443),
    App("payments", "ledger", 2, 5432),
)


def kubelet(node: str) -> Author:
    return Author(f"system:node:{node}", "kubelet/v1.36.2")


def controller(name: str) -> Author:
    return Author(f"system:controller:{name}", "ctrlmgr/0.1.0")


class RunningPod(NamedTuple):
    """Return a pod that has started."""

    name: str
    version: str
    node: str
    ready: bool

    @property
    def address(self) -> str:
        return f"10.244.{NODES.index(self.node)}.{sum(map(ord, self.name)) % 250 + 2}"


class Cluster:
    """Writes events into a log, as the cluster's components would."""

    def __init__(self, log: EventLog, clock: FakeClock) -> None:
        self.clock = clock
        self.random = Random(7)
        self.running: dict[App, list[RunningPod]] = {}
        self._log = log
        self._last: dict[tuple[str, str, str], Object] = {}
        self._term = 0
        self._reconciles = 100
        self._renewed_at = 0
        self._names = 0

    @property
    def head(self) -> int:
        return self._log.head().revision

    def wait(self, seconds: float) -> None:
        """Advance the time; meanwhile, the leader renews its Lease."""
        ends_at = self.clock.now() + round(seconds * 1_000_000)
        while self._term and self._renewed_at + 60_000_000 < ends_at:
            self.clock.step(max(0.0, (self._renewed_at + 60_000_000 - self.clock.now()) / 1_000_000))
            self.renew()
        self.clock.step(max(0.0, (ends_at - self.clock.now()) / 1_000_000))

    def lead(self, holder: str) -> None:
        """Begin a term."""
        self._term += 1
        self.renew(holder, takeover=True)

    def renew(self, holder: str = "", *, takeover: bool = False) -> None:
        now = format_time_seconds(self.clock.now())
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": now, "leaseTransitions": self._term}
        place = ("Lease", "kube-system", "kube-controller-manager")
        if not holder:
            spec["holderIdentity"] = self._last[place].to_dict()["spec"]["holderIdentity"]
        self._renewed_at = self.clock.now()
        self.put(
            Author("system:kube-controller-manager", "ctrlmgr/0.1.0"),
            self.made(*place, api_version="coordination.k8s.io/v1", spec=spec),
            fence=Fence(LEASE, self._term, takeover=takeover),
        )

    def made(self, kind: str, namespace: str, name: str, *, api_version: str = "v1", **fields: Any) -> Object:
        """Return the next version of an object, with changed fields."""
        before = self._last.get((kind, namespace, name))
        metadata = {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "uid": f"{kind.lower()}-{namespace}-{name}",
            "creationTimestamp": format_time_seconds(self.clock.now()),
            **fields.pop("meta", {}),
        }
        if before is not None:
            metadata["creationTimestamp"] = before.to_dict()["metadata"]["creationTimestamp"]
        return Object.from_dict({"kind": kind, "apiVersion": api_version, "metadata": metadata, **fields})

    def put(self, author: Author, *objects: Object, **more: Any) -> list[int]:
        """Write objects in one append; return their revisions."""
        proposals = []
        for obj in objects:
            place = _place(obj)
            proposals.append(Proposal(EventType.MODIFIED if place in self._last else EventType.ADDED, obj, None))
            self._last[place] = obj
        return self._append(author, proposals, **more)

    def delete(self, author: Author, *objects: Object, **more: Any) -> list[int]:
        for obj in objects:
            del self._last[_place(obj)]
        return self._append(author, [Proposal(EventType.DELETED, obj, None) for obj in objects], **more)

    def _append(self, author: Author, proposals: Sequence[Proposal], **more: Any) -> list[int]:
        first = self._log.head().revision + 1
        self._log.append(proposals, author=author, **more)
        self.clock.step(0.02 + self.random.random() / 10)
        return list(range(first, first + len(proposals)))

    def reconciled(
        self, name: str, key: str, triggers: Iterable[int], *objects: Object, gone: Sequence[Object] = (), **more: Any
    ) -> list[int]:
        """Write objects as a reconcile whose triggers are the revisions `triggers`."""
        self._reconciles += 1
        attempt, failure = more.get("attempt", 1), more.get("failure", "")
        cause = Cause(self._reconciles, name, key, attempt, self.clock.now(), tuple(triggers))
        given: dict[str, Any] = {"fence": Fence(LEASE, self._term), "cause": cause}
        written = self.put(controller(name), *objects, **given) if objects else []
        written += self.delete(controller(name), *gone, **given) if gone else []
        duration = self.random.randint(900, 9000)
        self._log.finish(self._reconciles, Outcome(duration, "error" if failure else "ok", failure))
        return written

    def pod(self, app: App, pod: RunningPod) -> Object:
        """Return a pod; a pod without a node has the phase Pending."""
        name, version, node, ready = pod
        now = format_time_seconds(self.clock.now())
        container = {"name": app.name, "image": f"registry.example.com/{app.namespace}/{app.name}:{version}"}
        conditions = [
            {"type": "PodScheduled", "status": str(bool(node)), "lastTransitionTime": now},
            {"type": "Ready", "status": str(ready), "lastTransitionTime": now},
        ]
        status: dict[str, Any] = {"phase": "Running" if node else "Pending", "conditions": conditions}
        if node:
            status["podIP"] = pod.address
            state = {**container, "ready": ready, "restartCount": 0, "state": {"running": {"startedAt": now}}}
            status["containerStatuses"] = [state]
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app.name}-{digest(version)}", "uid": "rs"}
        return self.made(
            "Pod",
            app.namespace,
            name,
            meta={"labels": {"app": app.name, "version": version}, "ownerReferences": [{**owner, "controller": True}]},
            spec={"containers": [container], **({"nodeName": node} if node else {}), "restartPolicy": "Always"},
            status=status,
        )

    def new_pod_name(self, app: App, version: str) -> str:
        self._names += 1
        return f"{app.name}-{digest(version)}-{_letters(self._names * 7919)}"


def _place(obj: Object) -> tuple[str, str, str]:
    return obj.to_dict()["kind"], obj.namespace, obj.name


def _letters(number: int) -> str:
    letters = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(letters[number // len(letters) ** place % len(letters)] for place in range(5))


def digest(version: str) -> str:
    return _letters(sum(ord(each) ** 3 * 31 for each in version)) + "f9"
