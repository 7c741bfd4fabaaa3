"""Two plugins of the scheduler: each node runs pods of one namespace only, and cheap nodes are preferred.

Run it: `ctrlmgr serve --nodes 3 --app examples.scheduler_plugins:app`, or `python examples/scheduler_plugins.py` to see
it work in a test harness.
"""

from ctrlmgr import App, NodeInfo, PodInfo

app = App("placement")
scheduler = app.scheduler


@scheduler.filter
def one_tenant(pod: PodInfo, node: NodeInfo) -> str | None:
    """Refuse a node on which pods of another namespace run."""
    others = {each.namespace for each in node.pods.values()} - {pod.namespace}
    return f"node(s) ran pods of namespace {min(others)}" if others else None


@scheduler.score(weight=10)
def cheap_nodes(pod: PodInfo, node: NodeInfo) -> int:
    """Prefer nodes with a low price, which is a label."""
    return max(100 - int(node.labels.get("example.com/cents-per-hour", "100")), 0)


if __name__ == "__main__":
    from ctrlmgr import logging
    from ctrlmgr.testing import Harness

    logging.configure(level="warning", format="console")
    cluster = Harness(app, nodes=2)
    second = cluster.list("v1/Node")[1].name
    cluster.patch("v1/Node", second, {"metadata": {"labels": {"example.com/cents-per-hour": "5"}}})
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    for namespace in ("red", "blue", "green"):
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        metadata = {"name": "web", "namespace": namespace}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        cluster.settle()
        (pod,) = cluster.list("v1/Pod", namespace=namespace)
        print(f"{namespace}: {pod['spec'].get('nodeName') or pod['status']['conditions'][0]['message']}")
