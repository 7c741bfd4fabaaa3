"""Tests of the Events that controllers create, in kubectl's output, and of the default objects of namespaces."""

from __future__ import annotations

from tests.e2e.kubectl import Kubectl, squeezed
from tests.e2e.serving import Server, until

TOO_MANY = "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped"
"""The message of the mirroring controller about Endpoints with one address more than the maximum."""


def overfill(kubectl: Kubectl) -> None:
    """Create Endpoints that cannot be mirrored completely, and wait for the controller's Event."""
    addresses = [{"ip": f"10.0.{number >> 8}.{number & 255}"} for number in range(1, 1002)]
    kubectl(
        "create -f -",
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}},
    )
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}}
    kubectl("create -f -", {**endpoints, "subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]})
    until(lambda: "TooManyAddressesToMirror" in kubectl("get events"))


def test_describe_shows_events_of_controllers(kubectl: Kubectl) -> None:
    overfill(kubectl)
    told = squeezed(kubectl("describe endpoints web"))
    assert told.splitlines()[-1].startswith("Warning TooManyAddressesToMirror ")
    assert told.splitlines()[-1].endswith(f"endpoint-slice-mirroring-controller {TOO_MANY}")


def test_events_of_an_object(kubectl: Kubectl) -> None:
    overfill(kubectl)
    head, row = squeezed(kubectl("get events --field-selector=involvedObject.name=web")).splitlines()
    assert head == "LAST SEEN TYPE REASON OBJECT MESSAGE"
    assert row.split(maxsplit=4)[1:] == ["Warning", "TooManyAddressesToMirror", "endpoints/web", TOO_MANY]
    if kubectl.minor >= 26:
        told = squeezed(kubectl("events --for endpoints/web"))
        assert f"TooManyAddressesToMirror Endpoints/web {TOO_MANY}" in told
        assert kubectl.run("events --for service/web").err.startswith("No events found")


def test_a_repeated_event_is_counted(kubectl: Kubectl) -> None:
    overfill(kubectl)
    [event] = kubectl.get("events")["items"]
    before = event["count"]
    kubectl("label endpoints web again=true")
    until(lambda: kubectl.get("events")["items"][0]["count"] > before)
    [event] = kubectl.get("events")["items"]
    assert event["source"] == {"component": "endpoint-slice-mirroring-controller"}
    assert event["reportingComponent"] == "endpoint-slice-mirroring-controller"


def test_every_namespace_has_a_service_account_and_the_certificate(kubectl: Kubectl, server: Server) -> None:
    assert kubectl("get serviceaccounts -o name") == "serviceaccount/default\n"
    published = kubectl.get("configmap kube-root-ca.crt")
    assert published["data"]["ca.crt"] == (server.kubeconfig.parent / "pki" / "ca.crt").read_text()
    before = kubectl.get("serviceaccount default")["metadata"]["uid"]
    kubectl("delete serviceaccount default")
    kubectl("delete configmap kube-root-ca.crt")
    until(lambda: "NotFound" not in kubectl.run("get configmap kube-root-ca.crt").err)
    until(lambda: "NotFound" not in kubectl.run("get serviceaccount default").err)
    assert kubectl.get("serviceaccount default")["metadata"]["uid"] != before
