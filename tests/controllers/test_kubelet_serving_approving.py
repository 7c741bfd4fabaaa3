"""Tests of serving certificates of kubelets: the controller approves a request only for exactly the addresses of the
requesting node.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.kubelet_serving_approving import controller
from ctrlmgr.engine.request_options import Requester
from tests.authentication.authorities import subject
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SERVING = "kubernetes.io/kubelet-serving"
KEY = ec.generate_private_key(ec.SECP256R1())
NODE = "system:node:n1"
ADDRESSES = [
    {"type": "Hostname", "address": "n1"},
    {"type": "InternalIP", "address": "192.0.2.7"},
    {"type": "InternalIP", "address": "fd00::7"},
    {"type": "ExternalDNS", "address": "n1.example.com"},
]
NAMES = [
    x509.DNSName("n1"),
    x509.DNSName("n1.example.com"),
    x509.IPAddress(ip_address("192.0.2.7")),
    x509.IPAddress(ip_address("fd00::7")),
]


class ServingStage(WorkedStage):
    def __init__(self) -> None:
        super().__init__(lambda stage: controller.build(StageContext(stage), NoOptions()))

    def add_node(self, name: str = "n1", addresses: Sequence[Any] = ADDRESSES) -> None:
        self.create("/api/v1/nodes", {"metadata": {"name": name}, "status": {"addresses": list(addresses)}})
        self.work()

    def ask(
        self,
        who: str = NODE,
        *,
        groups: Sequence[str] = ("system:nodes",),
        whose: x509.Name | None = None,
        names: Sequence[x509.GeneralName] = NAMES,
        signer: str = SERVING,
        usages: Sequence[str] = ("digital signature", "server auth"),
    ) -> None:
        whose = whose or subject(NODE, ["system:nodes"])
        builder = x509.CertificateSigningRequestBuilder().subject_name(whose)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pem = builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)
        fields = {
            "kind": "CertificateSigningRequest",
            "apiVersion": "certificates.k8s.io/v1",
            "metadata": {"name": "one"},
            "spec": {"request": b64encode(pem).decode(), "signerName": signer, "usages": list(usages)},
        }
        EngineClient(self.engine, self._run, Requester(who, groups=tuple(groups))).create(Object.from_dict(fields))
        self.work()

    @property
    def decided(self) -> list[str]:
        status = self.send("GET", f"{CSRS}/one").body.get("status") or {}
        return [each["type"] for each in status.get("conditions") or ()]


@pytest.fixture
def stage() -> ServingStage:
    return ServingStage()


def test_a_request_for_exactly_the_nodes_addresses_is_approved(stage: ServingStage) -> None:
    stage.add_node()
    stage.ask()
    assert stage.decided == ["Approved"]


def test_a_hostname_that_is_an_address_is_an_address(stage: ServingStage) -> None:
    stage.add_node(addresses=[{"type": "Hostname", "address": "192.0.2.7"}])
    stage.ask(names=[x509.IPAddress(ip_address("192.0.2.7"))])
    assert stage.decided == ["Approved"]


@pytest.mark.parametrize(
    "names",
    [NAMES[:-1], [*NAMES, x509.DNSName("other")], [x509.DNSName("kubernetes.default.svc")]],
    ids=["one is missing", "one too many", "another"],
)
def test_other_names_wait_for_an_administrator(stage: ServingStage, names: Sequence[x509.GeneralName]) -> None:
    stage.add_node()
    stage.ask(names=names)
    assert stage.decided == []


@pytest.mark.parametrize(
    "asked",
    [
        {"who": "system:node:n2"},
        {"who": "alice", "groups": ()},
        {"groups": ()},
        {"whose": subject("system:node:n2", ["system:nodes"])},
        {"whose": subject(NODE, ["system:masters"])},
        {"usages": ("digital signature", "client auth")},
        {"signer": "kubernetes.io/kube-apiserver-client"},
    ],
    ids=["another node", "a user", "not in the group", "in another's name", "other group", "client", "other signer"],
)
def test_a_request_of_another_kind_is_ignored(stage: ServingStage, asked: dict[str, Any]) -> None:
    stage.add_node()
    stage.add_node("n2")
    stage.ask(**asked)
    assert stage.decided == []


def test_a_request_is_checked_again_when_the_node_reports_its_addresses(stage: ServingStage) -> None:
    stage.ask()
    assert stage.decided == []
    stage.add_node(addresses=())
    assert stage.decided == []
    body = {"status": {"addresses": ADDRESSES}}
    assert stage.send("PATCH", "/api/v1/nodes/n1/status", body, media_type="application/merge-patch+json").code == 200
    stage.work()
    assert stage.decided == ["Approved"]
