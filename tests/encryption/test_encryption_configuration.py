from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.api.resource import INTERNAL_GROUP, SECRETS, Resource
from ctrlmgr.encryption.key_providers import read_providers
from ctrlmgr.errors import SettingsError

HEAD = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n"
KEY = "{name: key1, secret: c2VjcmV0IGlzIHNlY3VyZQ==}"


def written(folder: Path, resources: str) -> Path:
    path = folder / "keys.yaml"
    path.write_text(HEAD + f"resources: {resources}\n", encoding="utf-8")
    return path


def rule(resources: str, providers: str = f"[{{aesgcm: {{keys: [{KEY}]}}}}]") -> str:
    return f"{{resources: {resources}, providers: {providers}}}"


def of(*rules: str) -> str:
    return f"[{', '.join(rules)}]"


CASES = {
    "[]": "resources: Required value: at least one resources is required",
    of(rule("[]")): "resources[0].resources: Required value: at least one resources[0].resources is required",
    of(rule("[secrets]", "[]")): (
        "resources[0].providers: Required value: at least one resources[0].providers is required"
    ),
    of(rule("[Secrets]")): (
        'resources[0].resources[0]: Invalid value: "Secrets": resource name should not contain capital letters'
    ),
    of(rule("['*']")): (
        "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from core API group or "
        "*.* to encrypt all resources"
    ),
    of(rule("['secrets.*']")): "encrypting the same resource across groups is not supported",
    of(rule("[events.events.k8s.io]")): "objects are stored using the 'events' API group in etcd",
    of(rule("[secrets, secrets]")): "the same resource cannot be specified multiple times",
    of(rule("[secrets, '*.']")): "using overlapping resources such as 'secrets' and '*.' in the same resource list",
    of(rule("['*.']"), rule("[secrets]")): 'resource "secrets" is masked by earlier rule "*."',
    of(rule("['*.*']"), rule("[deployments.apps]")): 'resource "deployments.apps" is masked by earlier rule "*.*"',
    of(rule("[secrets]", "[{}]")): "provider does not contain any of the expected providers",
    of(rule("[secrets]", "[{identity: {}, aescbc: {keys: []}}]")): "more than one provider specified in a single",
    of(rule("[secrets]", "[{aescbc: {keys: []}}]")): "Required value: at least one keys is required",
    of(rule("[secrets]", "[{aescbc: {keys: [{name: a, secret: YQ==}]}}]")): (
        'resources[0].providers[0].aescbc.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected '
        "length, got 1, expected one of [16 24 32]"
    ),
    of(rule("[secrets]", "[{secretbox: {keys: [{name: a, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]}}]")): (
        "got 16, expected one of [32]"
    ),
    of(rule("[secrets]", "[{aescbc: {keys: [{name: a, secret: hush!}]}}]")): "secrets must be base64 encoded",
    of(rule("[secrets]", "[{aescbc: {keys: [{secret: YQ==}]}}]")): "name is a mandatory field for a key",
    of(rule("[secrets]", "[{aescbc: {keys: [{name: a}]}}]")): "secret is a mandatory field for a key",
    of(rule("[secrets]", "[{kms: {apiVersion: v2, endpoint: unix:///a}}]")): "name is a mandatory field for a provider",
    of(rule("[secrets]", "[{kms: {apiVersion: v2, name: a, endpoint: http://b}}]")): (
        'unsupported scheme "http" for KMS provider, only unix is supported'
    ),
    of(rule("[secrets]", "[{kms: {apiVersion: v2, name: a}}]")): "endpoint is a mandatory field for a kms",
    of(rule("[secrets]", '[{kms: {apiVersion: v2, name: "a:b", endpoint: "unix:///a"}}]')): (
        "invalid KMS provider name a:b, must not contain ':'"
    ),
    of(rule("[secrets]", '[{kms: {apiVersion: v2, name: a, endpoint: "unix:///a", timeout: 0s}}]')): (
        "timeout should be a positive value"
    ),
    of(rule("[secrets]", '[{kms: {apiVersion: v2, name: a, endpoint: "unix:///a", cachesize: 5}}]')): (
        "cachesize is not supported in v2"
    ),
    of(rule("[secrets]", '[{kms: {name: a, endpoint: "unix:///a"}}]')): "KMSv1 is deprecated and disabled",
    of(rule("[secrets]", "[{aescbc: {keyz: []}}]")): "unknown field `keyz`",
}


@pytest.mark.parametrize("resources", CASES)
def test_an_invalid_configuration_is_refused_with_its_line(resources: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read_providers(written(tmp_path, resources))
    assert CASES[resources] in str(caught.value)
    assert "keys.yaml:3: " in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_most_exact_rule_chooses_the_ciphers(tmp_path: Path) -> None:
    other = "[{aescbc: {keys: [{name: key2, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]}}, {identity: {}}]"
    rules = of(rule("[secrets]"), rule("['*.apps']", other), rule("['*.*']", "[{identity: {}}]"))
    providers = read_providers(written(tmp_path, rules))
    assert [each.prefix for each in providers.of(SECRETS)] == ["k8s:enc:aesgcm:v1:key1:"]
    deployments = Resource("apps", "deployments")
    assert [each.prefix for each in providers.of(deployments)] == ["k8s:enc:aescbc:v1:key2:", "k8s:enc:identity:"]
    assert providers.encrypts(deployments)
    assert not providers.encrypts(Resource("", "pods"))
    assert providers.of(Resource(INTERNAL_GROUP, "allocations")) == ()
    assert [each.prefix for each in providers.of_texts()] == ["k8s:enc:aesgcm:v1:key1:"]
