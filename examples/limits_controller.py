"""A short controller: every namespace gets a ConfigMap `limits`, which depends on the namespace's label `size`.

Run it: `ctrlmgr serve --app examples.limits_controller:app`, or `python examples/limits_controller.py` to see it work
in a test harness.
"""

from ctrlmgr import App, Context, Untyped

app = App("limits")


@app.controller("v1/Namespace", owns=["v1/ConfigMap"])
def limits_controller(namespace: Untyped, context: Context) -> None:
    """Create or update the ConfigMap `limits` of each namespace."""
    pods = {"small": "10", "large": "100"}.get(namespace.labels.get("size", "small"), "10")
    metadata = {"name": "limits", "namespace": namespace.name}
    context.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"pods": pods}})


if __name__ == "__main__":
    from ctrlmgr import logging
    from ctrlmgr.testing import Harness

    logging.configure(level="warning", format="console")
    cluster = Harness(app)
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.patch("v1/Namespace", "shop", {"metadata": {"labels": {"size": "large"}}})
    cluster.settle()
    for write in cluster.written():
        print(f"{write.type:<8} {write.resource} {write.key} because of revisions {list(write.triggers)}")
