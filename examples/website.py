"""A whole operator: a kind, three children, a finalizer, a resync, admission, and a watch of another kind."""

from typing import Annotated, Any

from ctrlmgr import App, Context, Kind, Meta, Metadata, Model, Refused, Result, Status, Untyped, Watch, Write

app = App("websites")


class WebsiteSpec(Model):
    text: str
    theme: str = ""
    replicas: Annotated[int, Meta(ge=0)] = 1


class WebsiteStatus(Status):
    ready: int = 0


class Website(Kind, api_version="example.com/v1"):
    spec: WebsiteSpec
    status: WebsiteStatus = WebsiteStatus()


class ConfigMap(Kind, api_version="v1"):
    data: dict[str, str] = {}


def websites_with(theme: Untyped, cache: Any) -> list[str]:
    """A theme is a Secret; a change of it triggers reconciles of the websites that name it."""
    return [each.name for each in cache.list(Website, theme.namespace) if each.spec.theme == theme.name]


@app.admission(Website, on="spec")
def website_limits(website: Website, write: Write) -> None:
    """Refuse more than five replicas, except for administrators."""
    if website.spec.replicas > 5 and "system:masters" not in write.groups:
        raise Refused("a website has at most five replicas")


@app.controller(
    Website,
    owns=[ConfigMap, "apps/v1/Deployment", "v1/Service"],
    watches=[Watch("v1/Secret", to=websites_with)],
    resync=600,
)
def website_controller(website: Website, context: Context) -> Result | None:
    """Serve the text of each website, with its theme."""
    if website.spec.theme and context.get("v1/Secret", website.spec.theme) is None:
        context.condition("Ready", False, "NoTheme", f"there is no Secret {website.spec.theme}")
        return None
    context.apply(ConfigMap(metadata=Metadata(name=website.name), data={"index.html": website.spec.text}))
    deployment = context.apply(deployment_of(website))
    context.apply(service_of(website))
    website.status.ready = deployment.fields.get("status", {}).get("readyReplicas", 0)
    context.condition("Ready", website.status.ready >= website.spec.replicas, "Replicas")
    return None


@website_controller.finalize("example.com/announced")
def website_is_gone(website: Website, context: Context) -> None:
    """Announce the removal of the website before its objects are deleted."""
    context.event("Closed", f"{website.name} is closed")


def deployment_of(website: Website) -> dict[str, Any]:
    """Return the Deployment with the web servers of a website."""
    labels = {"website": website.name}
    volume = {"name": "text", "configMap": {"name": website.name}}
    mount = {"name": "text", "mountPath": "/usr/share/nginx/html"}
    pod = {"containers": [{"name": "nginx", "image": "nginx", "volumeMounts": [mount]}], "volumes": [volume]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": website.spec.replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": website.name}, "spec": spec}


def service_of(website: Website) -> dict[str, Any]:
    """Return the Service with the address of a website."""
    spec = {"selector": {"website": website.name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": website.name}, "spec": spec}
