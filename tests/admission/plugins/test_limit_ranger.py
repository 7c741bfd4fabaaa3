"""Tests of LimitRanger: defaults of containers, and refused containers, pods and claims."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.plugins.limit_ranger import ANNOTATION, LimitRanger
from ctrlmgr.errors import Forbidden
from tests.admission.stage import Write


def limit_range(*limits: dict[str, Any], name: str = "l") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(limits)}}


def asking(name: str = "c", requests: dict[str, str] | None = None, **limits: str) -> dict[str, Any]:
    asked = {"requests": requests, "limits": limits}
    return {"name": name, "image": "i", "resources": {field: each for field, each in asked.items() if each}}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), **spec}}


def refusal(write: Write) -> str:
    with pytest.raises(Forbidden) as refused:
        write.admit(LimitRanger())
    return str(refused.value).partition(" is forbidden: ")[2]


DEFAULTS = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"}}


def test_containers_get_default_limits_and_the_pod_lists_them() -> None:
    fields = pod(asking("a", cpu="3"), {"name": "b"}, initContainers=[asking("i", {"cpu": "1"}, memory="1Mi")])
    given = Write("v1/pods", fields, None, limit_range(DEFAULTS)).admit(LimitRanger())
    main, init = given["spec"]["containers"], given["spec"]["initContainers"]
    assert main[0]["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "3", "memory": "1Gi"}}
    assert main[1]["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    assert init[0]["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Mi", "cpu": "2"}}
    assert given["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container a; memory limit for container a; "
        "cpu request for container b; cpu, memory limit for container b; cpu limit for init container i"
    )


def test_an_updated_pod_gets_no_defaults() -> None:
    write = Write("v1/pods", pod({"name": "c"}), pod({"name": "c"}), limit_range(DEFAULTS))
    assert write.admit(LimitRanger())["spec"]["containers"] == [{"name": "c"}]


@pytest.mark.parametrize(
    ("limit", "fields", "problem"),
    [
        (
            {"type": "Container", "min": {"cpu": "2"}},
            pod(asking(requests={"cpu": "1"})),
            "minimum cpu usage per Container is 2, but request is 1",
        ),
        (
            {"type": "Container", "min": {"memory": "1Gi"}},
            pod(asking()),
            "minimum memory usage per Container is 1Gi.  No request is specified",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}},
            pod(asking(cpu="1001m")),
            "maximum cpu usage per Container is 1, but limit is 1001m",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}},
            pod(asking(requests={"cpu": "500m"})),
            "maximum cpu usage per Container is 1.  No limit is specified",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            pod(asking(requests={"cpu": "1"}, cpu="3")),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}},
            pod(asking(requests={"cpu": "1"}, cpu="3")),
            "[maximum cpu usage per Container is 1, but limit is 3, "
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000]",
        ),
        (
            {"type": "Pod", "max": {"cpu": "3"}},
            pod(asking("a", cpu="2"), asking("b", cpu="2")),
            "maximum cpu usage per Pod is 3, but limit is 4",
        ),
        (
            {"type": "Pod", "max": {"cpu": "3"}},
            pod(asking("a", cpu="1"), initContainers=[asking("i", cpu="4")]),
            "maximum cpu usage per Pod is 3, but limit is 4",
        ),
        (
            {"type": "Pod", "max": {"cpu": "3"}},
            pod(asking("a", cpu="1"), resources={"limits": {"cpu": "4"}}),
            "maximum cpu usage per Pod is 3, but limit is 4",
        ),
        (
            {"type": "Pod", "max": {"hugepages-2Mi": "2Mi"}},
            pod(asking("a", cpu="1"), resources={"limits": {"cpu": "4", "hugepages-2Mi": "4Mi"}}),
            "maximum hugepages-2Mi usage per Pod is 2Mi.  No limit is specified",
        ),
    ],
)
def test_pods_outside_the_limits_are_refused(limit: dict[str, Any], fields: dict[str, Any], problem: str) -> None:
    assert refusal(Write("v1/pods", fields, None, limit_range(limit))) == problem


def test_claims_are_checked_at_creation_and_at_expansion() -> None:
    def claim(amount: str) -> dict[str, Any]:
        return {"spec": {"resources": {"requests": {"storage": amount}}}}

    limits = limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "5Gi"}})
    path = "v1/persistentvolumeclaims"
    assert refusal(Write(path, claim("1Gi"), None, limits)).startswith(
        "minimum storage usage per PersistentVolumeClaim"
    )
    said = refusal(Write(path, claim("6Gi"), claim("5Gi"), limits))
    assert said == "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"
    Write(path, claim("5Gi"), None, limits).admit(LimitRanger())


def test_each_limit_range_is_checked_and_pods_in_deletion_are_exempt() -> None:
    ranges = [limit_range({"type": "Container", "max": {"cpu": most}}, name=most) for most in ("5", "2")]
    assert refusal(Write("v1/pods", pod(asking(cpu="3")), None, *ranges)).endswith("is 2, but limit is 3")
    going = {**pod(asking()), "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    Write("v1/pods", pod(asking(cpu="3")), going, *ranges, subresource="resize").admit(LimitRanger())
