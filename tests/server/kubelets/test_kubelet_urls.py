"""Tests of the URLs at which the server calls kubelets: the address of the node, the container, and the parameters of
each request.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.pod_log_options import parse_log
from ctrlmgr.errors import ApiError
from ctrlmgr.server.kubelets.kubelet_urls import container_of, log_url, stream_url
from ctrlmgr.settings.kubelet_settings import ADDRESS_TYPES


def a_node(**status: Any) -> Object:
    addresses = [{"type": "InternalIP", "address": "fd00::1"}, {"type": "Hostname", "address": "n"}]
    fields = {"addresses": addresses, **status}
    return Object.from_dict({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": fields})


def a_pod(*names: str, **spec: Any) -> Object:
    fields = {"containers": [{"name": each} for each in names], **spec}
    meta = {"name": "p", "namespace": "d"}
    return Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": fields})


def test_the_first_preferred_address_and_the_reported_port_are_used() -> None:
    options = parse_log({}, "p")
    reported = a_node(daemonEndpoints={"kubeletEndpoint": {"Port": 99}})
    assert str(log_url(a_pod("c"), a_node(), options, ADDRESS_TYPES, 10250)) == "https://n:10250/containerLogs/d/p/c"
    assert str(log_url(a_pod("c"), reported, options, ["InternalIP"], 10250)) == (
        "https://[fd00::1]:99/containerLogs/d/p/c"
    )
    with pytest.raises(ApiError, match=r"no preferred addresses found; known addresses: \[{InternalIP fd00::1} {Host"):
        log_url(a_pod("c"), a_node(), options, ["ExternalIP"], 10250)


def test_log_options_are_converted_to_the_kubelets() -> None:
    query = {"sinceTime": ["2026-01-02T03:04:05Z"], "follow": ["true"], "tailLines": ["5"], "timestamps": ["false"]}
    found = log_url(a_pod("c"), a_node(), parse_log(query, "p"), ADDRESS_TYPES, 1)
    assert found.query == "follow=true&sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=5"


@pytest.mark.parametrize(
    ("part", "options", "target"),
    [
        ("exec", {"stdin": True, "tty": True, "command": ["sh", "-c", "a b"]}, "/exec/d/p/c?command=sh&command=-c&"
         "command=a+b&input=1&tty=1"),
        ("attach", {"stdout": True, "stderr": True}, "/attach/d/p/c?error=1&output=1"),
        ("portforward", {"ports": [80, 443]}, "/portForward/d/p?port=80%2C443"),
        ("portforward", {}, "/portForward/d/p"),
    ],
)  # fmt: skip
def test_connect_options_are_converted_to_the_kubelets(part: str, options: Unstructured, target: str) -> None:
    assert stream_url(a_pod("c"), a_node(), part, options, ADDRESS_TYPES, 1).target == target


def test_the_container_is_named_or_unique() -> None:
    pod = a_pod("a", "b", initContainers=[{"name": "i"}], ephemeralContainers=[{"name": "e"}])
    assert [container_of(pod, each) for each in "aibe"] == ["a", "i", "b", "e"]
    with pytest.raises(ApiError, match=r"for pod p, choose one of: \[i a b e\]"):
        container_of(pod, "")
    with pytest.raises(ApiError, match="container x is not valid for pod p"):
        container_of(pod, "x")
    assert container_of(a_pod("a", initContainers=[{"name": "i"}]), "") == "a"
