"""The defaults of pod specs.

Guarantees: all defaults are set in place. If the defaults are already set, the functions change nothing. A default is
set only if the field is absent, or if the field has the zero value and is not a pointer in Go. The function
`default_pod_spec` sets the defaults of every pod spec, including the specs in templates. The function `default_pod`
sets additional defaults of pods.

Source: Kubernetes `pkg/apis/core/v1/{defaults,conversion,zz_generated.defaults}.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.kinds.core.pod.image_name import pull_policy
from ctrlmgr.kinds.core.pod.pod_resources import default_pod_resources
from ctrlmgr.kinds.core.pod.volumes.defaults import default_volume

_STALE_ANNOTATIONS = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}" for stage in ("alpha", "beta") for what in ("s", "-statuses")
)
_PROBE_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_NESTED = frozenset(("ports", "env", "lifecycle", *_PROBES))
"""The fields of a container that contain nested fields with defaults; the field `resources` always exists."""


def containers_of(spec: Unstructured) -> Iterator[tuple[str, int, Unstructured]]:
    """Yield every container of a pod spec with its list and its index, in the order of `VisitContainersWithPath`."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield kind, index, container


def default_pod(pod: Unstructured) -> None:
    """Set the defaults of a Pod."""
    spec = pod.setdefault("spec", {})
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    default_pod_spec(spec)
    _default_requests(spec)
    if spec.get("resources") and is_on("PodLevelResources"):
        default_pod_resources(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _default_host_ports(spec)
    default_pod_status(pod)


def default_pod_status(pod: Unstructured) -> None:
    """Set the defaults of a Pod's status and metadata."""
    _drop_stale_annotations(pod)
    if status := pod.get("status"):
        _converge_addresses(status)


def default_template(template: Unstructured) -> None:
    """Set the defaults of a PodTemplateSpec."""
    default_pod_spec(template.setdefault("spec", {}))
    _drop_stale_annotations(template)


def default_pod_spec(spec: Unstructured) -> None:
    """Set the defaults that pods and pod templates have in common."""
    for field, value in (
        ("dnsPolicy", "ClusterFirst"),
        ("restartPolicy", "Always"),
        ("schedulerName", "default-scheduler"),
    ):
        if not spec.get(field):
            spec[field] = value
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for _, _, container in containers_of(spec):
        _default_container(container)


def _default_container(container: Unstructured) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    if not _NESTED.isdisjoint(container):
        _default_parts(container)
    if container.get("resources") is None:
        container["resources"] = {}


def _default_parts(container: Unstructured) -> None:
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        if source := variable.get("valueFrom"):
            _default_source(source)
    for probe in _PROBES:
        if container.get(probe) is not None:
            _default_probe(container[probe])
    if lifecycle := container.get("lifecycle"):
        for hook in _HOOKS:
            _default_handler(lifecycle.get(hook) or {})


def _default_source(source: dict[str, Any]) -> None:
    if (reference := source.get("fieldRef")) and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"
    if (key := source.get("fileKeyRef")) and key.get("optional") is None:
        key["optional"] = False


def _default_probe(probe: dict[str, Any]) -> None:
    for field, value in _PROBE_DEFAULTS:
        if not probe.get(field):
            probe[field] = value
    _default_handler(probe)


def _default_handler(handler: dict[str, Any]) -> None:
    if (http := handler.get("httpGet")) is not None:
        http["path"] = http.get("path") or "/"
        http["scheme"] = http.get("scheme") or "HTTP"
    if (grpc := handler.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_requests(spec: Unstructured) -> None:
    """Set the default resource requests of containers to their limits."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources")
            if resources and (limits := resources.get("limits")):
                resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _default_host_ports(spec: Unstructured) -> None:
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def _drop_stale_annotations(owner: Unstructured) -> None:
    if annotations := (owner.get("metadata") or {}).get("annotations"):
        for each in _STALE_ANNOTATIONS:
            annotations.pop(each, None)


def _converge_addresses(status: dict[str, Any]) -> None:
    """Make `podIP` of a pod's status the first element of `podIPs`.

    If `podIP` differs from the first element, the list is replaced by a list that contains only `podIP`.
    """
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]
