"""Tests that only signers write the status of PodCertificateRequests, and of the requests that nodes may make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.admission.admission_chain import Chain
from ctrlmgr.admission.plugins.node_restriction import NodeRestriction
from ctrlmgr.admission.signer_protection import GuardedSigners
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes as Question
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, AlwaysAllow, Immediate, Verdict
from ctrlmgr.authorization.bootstrap.gated_roles import node_rules
from ctrlmgr.authorization.node.node_authorizer import NodeAuthorizer
from ctrlmgr.authorization.node.node_graph import NodeGraph
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import Forbidden, InternalError, Invalid
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.testing import FakeClock
from tests.admission.stage import Write

PATH = "certificates.k8s.io/v1beta1/podcertificaterequests"
NODE = Requester("system:node:n", ("system:nodes",))
OBJECTS = (
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "node-uid"}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "pod-uid"},
        "spec": {"nodeName": "n", "serviceAccountName": "sa"},
    },
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "sa", "namespace": "default", "uid": "sa-uid"},
    },
)


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    switch({"PodCertificateRequest": True})
    monkeypatch.setattr("tests.kinds.stage.KINDS", builtin_kinds(served=["certificates.k8s.io/v1beta1"]))
    yield
    switch({})


class Signer(Immediate):
    """An authorizer that allows to sign for some names."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def authorize(self, user: User, attributes: Question) -> Verdict:
        assert (attributes.verb, attributes.resource, attributes.group) == ("sign", "signers", "certificates.k8s.io")
        return ALLOWED if attributes.name in self._names else NO_OPINION


def request(**changes: str) -> dict[str, Any]:
    spec = {
        "signerName": "example.com/s",
        "podName": "p",
        "podUID": "pod-uid",
        "serviceAccountName": "sa",
        "serviceAccountUID": "sa-uid",
        "nodeName": "n",
        "nodeUID": "node-uid",
    }
    return {"spec": {**spec, **changes}}


def write_status(signer: Signer, status: dict[str, Any]) -> list[Any]:
    """Return the commands to the engine; raises the error with which the write is refused."""
    write = Write(PATH, {**request(), "status": status}, request(), subresource="status")
    return [*GuardedSigners(Chain([], FakeClock()), signer).validate(write.attributes)]


@pytest.mark.parametrize("name", ["example.com/s", "example.com/*"])
def test_a_signer_writes_the_status(name: str) -> None:
    assert write_status(Signer(name), {"conditions": [{}]}) == []


def test_other_users_cannot_write_the_status() -> None:
    assert write_status(Signer(), {}) == []
    with pytest.raises(Invalid) as refused:
        write_status(Signer("other.example.com/s"), {"conditions": [{}]})
    assert 'spec.signerName: Forbidden: User "alice" is not permitted to "sign" for signer "example.com/s"' in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({}, None, ""),
        ({"nodeName": "m"}, Forbidden, 'PodCertificateRequest.Spec.NodeName="m", which is not the requesting node "n"'),
        ({"nodeUID": "x"}, InternalError, 'names node UID "x", inconsistent with the running node ("node-uid")'),
        ({"podName": "q"}, InternalError, 'while retrieving pod "default/q" named in the PodCertificateRequest'),
        ({"podUID": "x"}, InternalError, 'contains pod UID ("x") which differs from running pod "pod-uid"'),
        (
            {"serviceAccountName": "x"},
            Forbidden,
            'contains serviceAccountName ("x") that differs from running pod ("sa")',
        ),
        (
            {"serviceAccountUID": "x"},
            InternalError,
            'names service account UID "x", which differs from the running service account ("sa-uid")',
        ),
    ],
)
def test_a_node_requests_certificates_only_for_its_pods(
    changes: dict[str, str], error: type[Exception] | None, words: str
) -> None:
    write = Write(PATH, request(**changes), None, *OBJECTS, requester=NODE)
    plugin = NodeRestriction(AlwaysAllow())
    if error is None:
        assert write.admit(plugin)["spec"]["podName"] == "p"
        return
    with pytest.raises(error) as refused:
        write.admit(plugin)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("verb", "subresource", "words"),
    [
        ("create", "", ""),
        ("get", "", "no relationship found between node 'n' and this object"),
        ("list", "", "can only list/watch podcertificaterequests with nodeName field selector"),
        ("delete", "", "nodes may not delete podcertificaterequests"),
        ("update", "status", "nodes may not access the status subresource of PodCertificateRequests"),
    ],
)
def test_the_node_authorizer_limits_what_nodes_do_with_requests(verb: str, subresource: str, words: str) -> None:
    asked = Question(verb, "", "certificates.k8s.io", "v1beta1", "podcertificaterequests", subresource, "default", "r")
    user = User("system:node:n", "", ("system:nodes",))
    verdict = NodeAuthorizer(NodeGraph(), node_rules(lambda gate: True)).authorize(user, asked)
    assert (verdict.allows, verdict.reason) == (not words, words)
    assert not NodeAuthorizer(NodeGraph(), node_rules(lambda gate: False)).authorize(user, asked).allows
