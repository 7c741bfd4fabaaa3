"""Tests of ClusterTrustBundles: names, certificates, versions and columns."""

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.tables.ages import ages_at
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.certificates.cluster_trust_bundle import MOST_BYTES, ClusterTrustBundleStrategy
from ctrlmgr.kinds.certificates.printers import CLUSTER_TRUST_BUNDLE
from tests.kinds.certificates.authorities import certificate
from tests.kinds.write import create, update

GROUP = "certificates.k8s.io"
STRATEGY = ClusterTrustBundleStrategy()
CA = certificate("a")
LEAF = certificate("leaf", is_authority=False)


@pytest.fixture(autouse=True)
def default_gates() -> Iterator[None]:
    yield
    switch({})


def bundle(trust: str = CA, signer: str = "", name: str = "b") -> dict[str, Any]:
    spec = {"trustBundle": trust}
    return {"metadata": {"name": name}, "spec": {**spec, "signerName": signer} if signer else spec}


@pytest.mark.parametrize("is_on", [False, True])
def test_both_versions_need_the_gate(is_on: bool) -> None:
    switch({"ClusterTrustBundle": is_on})
    versions = ["v1alpha1", "v1beta1"]
    kinds = builtin_kinds(served=[f"{GROUP}/{each}" for each in versions])
    found = [kinds.find(GROUP, each, "clustertrustbundles") for each in versions]
    assert [each is not None for each in found] == [is_on, is_on]
    assert {each.stored_version for each in found if each is not None} <= {"v1beta1"}


@pytest.mark.parametrize(
    ("name", "signer", "errors"),
    [
        ("b", "", []),
        ("example.com:s:b", "example.com/s", []),
        (
            "a:b",
            "",
            [
                'metadata.name: Invalid value: "a:b": ClusterTrustBundle without signer name must not have ":" in its '
                "name"
            ],
        ),
        (
            "b",
            "example.com/s",
            [
                'metadata.name: Invalid value: "b": ClusterTrustBundle for signerName example.com/s must be named with '
                "prefix example.com:s:"
            ],
        ),
        (
            "a:b",
            "s",
            [
                'metadata.name: Invalid value: "a:b": ClusterTrustBundle for signerName s must be named with prefix s:',
                'spec.signerName: Invalid value: "s": must be a fully qualified domain and path of the form '
                "'example.com/signer-name'",
            ],
        ),
    ],
)
def test_the_name_begins_with_the_signer(name: str, signer: str, errors: list[str]) -> None:
    assert create(STRATEGY, bundle(CA, signer, name), namespaced=False).messages == errors


OMITTED = 'spec.trustBundle: Invalid value: "<value omitted>": '
KEY = CA.replace("CERTIFICATE", "PUBLIC KEY")
HEADER = CA.replace("-----\n", "-----\nA: b\n\n", 1)
NONSENSE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("trust", "problems"),
    [
        (f"comment\n{CA}comment\n{certificate('b')}", []),
        ("", ["at least one trust anchor must be provided"]),
        (CA + KEY, ["entry 1 has bad block type: PUBLIC KEY"]),
        (HEADER, ["entry 0 has PEM block headers"]),
        (NONSENSE, ["entry 0 does not parse as X.509"]),
        (LEAF, ["entry 0 does not have the CA bit set"]),
        (certificate("none", is_authority=None), ["entry 0 does not have the CA bit set"]),
        (CA + NONSENSE + LEAF, ["entry 1 does not parse as X.509", "entry 2 does not have the CA bit set"]),
        (CA + certificate("b") + CA, ["duplicate trust anchor (indices [0 2])"]),
    ],
)
def test_a_bundle_contains_different_authorities(trust: str, problems: list[str]) -> None:
    assert create(STRATEGY, bundle(trust), namespaced=False).messages == [OMITTED + each for each in problems]


def test_a_bundle_has_a_limited_size() -> None:
    found = create(STRATEGY, bundle("x" * (MOST_BYTES + 1)), namespaced=False)
    assert found.messages == ["spec.trustBundle: Too long: may not be more than 1048576 bytes"]


def test_an_unchanged_bundle_is_not_validated_again() -> None:
    old = bundle("broken", "example.com/s", "example.com:s:b")
    assert update(STRATEGY, old, {"spec": {**old["spec"]}}, namespaced=False).messages == []
    changed = update(STRATEGY, old, {"spec": {**old["spec"], "trustBundle": "other"}}, namespaced=False)
    assert changed.messages == [f"{OMITTED}at least one trust anchor must be provided"]


def test_the_signer_is_immutable() -> None:
    old = bundle(CA, "example.com/s", "example.com:s:b")
    found = update(STRATEGY, old, {"spec": {"trustBundle": CA}}, namespaced=False)
    assert found.messages[-1] == 'spec.signerName: Invalid value: "": field is immutable'


@pytest.mark.parametrize(("signer", "shown"), [("", "<none>"), ("example.com/s", "example.com/s")])
def test_the_columns_show_the_signer(signer: str, shown: str) -> None:
    assert list(CLUSTER_TRUST_BUNDLE.row(bundle(CA, signer), ages_at(0))) == [shown]
