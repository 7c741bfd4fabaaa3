"""The story of a day in a cluster, which any client can perform: workloads, rollouts, a lost node, deletions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

CORE = "/api/v1/namespaces/{}"
APPS = "/apis/apps/v1/namespaces/{}"
BATCH = "/apis/batch/v1/namespaces/{}"
POLICY = "/apis/policy/v1/namespaces/{}"
SOON = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


class Teller(Protocol):
    """The client that performs the story."""

    def create(self, path: str, body: dict[str, Any]) -> object:
        """Create an object in a collection."""

    def patch(self, path: str, body: dict[str, Any]) -> object:
        """Change an object by a merge patch."""

    def delete(self, path: str) -> object:
        """Delete an object."""

    def names(self, path: str) -> Sequence[str]:
        """Return the names of the objects in a collection."""

    def rest(self, seconds: float = 3.0) -> None:
        """Wait this number of seconds, in which controllers, scheduler and kubelets work."""


def pods(app: str, image: str = "app:1", **spec: Any) -> dict[str, Any]:
    """Return a pod template whose pods leave a lost node after a second."""
    leave = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1} for key in SOON]
    containers = [{"name": "main", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, "tolerations": leave, **spec}}


def workload(name: str, replicas: int | None, **spec: Any) -> dict[str, Any]:
    """Return a Deployment, a StatefulSet or a DaemonSet; a DaemonSet has no replicas."""
    fields: dict[str, Any] = {"selector": {"matchLabels": {"app": name}}, "template": pods(name), **spec}
    return {"metadata": {"name": name}, "spec": {**fields, **({} if replicas is None else {"replicas": replicas})}}


def service(name: str, app: str, **spec: Any) -> dict[str, Any]:
    """Return a Service for an app."""
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    return {"metadata": {"name": name}, "spec": {"selector": {"app": app}, "ports": ports, **spec}}


def tell(
    teller: Teller, namespaces: Sequence[str] = ("shop", "bank"), *, node: str = "node-2", lost: float = 30
) -> None:
    """Perform the whole story; `node` and its pods are lost for this number of seconds."""
    for name in namespaces:
        _begin(teller, name)
    teller.rest(6)
    for name in namespaces:
        _change(teller, name)
    _lose(teller, node, lost)
    for name in namespaces:
        _end(teller, name)
    teller.rest(12)


def _begin(teller: Teller, name: str) -> None:
    core, apps = CORE.format(name), APPS.format(name)
    teller.create("/api/v1/namespaces", {"metadata": {"name": name}})
    teller.rest(1)
    for app, replicas in (("web", 4), ("api", 6)):
        teller.create(f"{apps}/deployments", workload(app, replicas))
        teller.create(f"{core}/services", service(app, app))
    budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    teller.create(f"{POLICY.format(name)}/poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget})
    teller.create(f"{core}/services", service("db", "db", clusterIP="None"))
    teller.create(f"{apps}/statefulsets", workload("db", 3, serviceName="db"))
    teller.create(f"{apps}/daemonsets", workload("agent", None))
    once = pods("once", restartPolicy="Never")
    once["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 1; exit 0"]
    job = {"completions": 3, "parallelism": 2, "template": once}
    teller.create(f"{BATCH.format(name)}/jobs", {"metadata": {"name": "once"}, "spec": job})


def _change(teller: Teller, name: str) -> None:
    core, apps = CORE.format(name), APPS.format(name)
    teller.patch(f"{apps}/deployments/web", {"spec": {"template": pods("web", "app:2")}})
    teller.rest()
    teller.patch(f"{apps}/deployments/api", {"spec": {"replicas": 3}})
    teller.patch(f"{apps}/statefulsets/db", {"spec": {"template": pods("db", "app:2")}})
    teller.rest(6)
    teller.patch(f"{apps}/deployments/api", {"spec": {"replicas": 8}})
    teller.patch(f"{apps}/statefulsets/db", {"spec": {"replicas": 2}})
    teller.rest()
    first = next(each for each in teller.names(f"{core}/pods") if each.startswith("web-"))
    teller.delete(f"{core}/pods/{first}")
    teller.patch(f"{apps}/deployments/web", {"spec": {"template": pods("web", "app:3")}})
    teller.rest()
    teller.patch(f"{core}/services/api", {"spec": {"selector": {"app": "web"}}})
    teller.rest(1)
    teller.patch(f"{core}/services/api", {"spec": {"selector": {"app": "api"}}})
    renamed = [{"name": "plain", "port": 81, "targetPort": 8081}]
    teller.patch(f"{core}/services/web", {"spec": {"ports": renamed}, "metadata": {"labels": {"tier": "front"}}})
    teller.rest(1)
    labelled = next(each for each in teller.names(f"{core}/pods") if each.startswith("api-"))
    teller.patch(f"{core}/pods/{labelled}", {"metadata": {"labels": {"app": "quarantined"}}})
    teller.rest()


def _lose(teller: Teller, node: str, seconds: float) -> None:
    path = f"/api/v1/nodes/{node}"
    teller.patch(path, {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": "lost"}}})
    teller.rest(seconds)
    teller.patch(path, {"metadata": {"annotations": {"simulate.ctrlmgr.io/node": None}}})
    teller.rest(6)


def _end(teller: Teller, name: str) -> None:
    core, apps = CORE.format(name), APPS.format(name)
    teller.delete(f"{core}/services/api")
    teller.delete(f"{apps}/deployments/api")
    teller.delete(f"{apps}/statefulsets/db")
    teller.rest()
    teller.delete(f"/api/v1/namespaces/{name}")
