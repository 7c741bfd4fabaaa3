"""Tests of token requests: which requests are accepted, and the issued tokens."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key
from ctrlmgr.errors import BadRequest, Conflict, Invalid, NamespaceTerminating, NotFound
from ctrlmgr.server.authn.service_account_tokens import DEFAULT_ISSUER
from ctrlmgr.server.authn.token_requests import TokenAnswer, TokenRequests
from tests.server.authn.test_service_account_tokens import Cluster, an, payload
from tests.server.site import Site, make, running


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.there[PODS, Key("default", "p")] = pod("p", "builder", "n")
    cluster.there[PODS, Key("default", "foreign")] = pod("foreign", "other", "n")
    return cluster


def pod(name: str, account: str, node: str) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    spec = {"serviceAccountName": account, "nodeName": node}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec})


def ask(cluster: Cluster, spec: Any = None, metadata: Any = None, **options: Any) -> TokenAnswer:
    requests = TokenRequests(cluster.tokens, cluster.find, clock=cluster.clock, **options)
    request = {"spec": spec or {}, "metadata": metadata or {}}
    requests.check("builder", "default", request)
    return requests.answer(cluster.account, request)


def test_the_namespace_must_exist_and_not_terminate(cluster: Cluster) -> None:
    where = NAMESPACES, Key("", "default")
    cluster.there[where] = an("Namespace", "default", "uid-of-default", deletionTimestamp="2026-01-01T00:00:00Z")
    with pytest.raises(NamespaceTerminating):
        ask(cluster)
    del cluster.there[where]
    with pytest.raises(NotFound, match='namespaces "default" not found'):
        ask(cluster)


def claims(answer: TokenAnswer) -> Any:
    return payload(answer.fields["status"]["token"])


def test_omitted_fields_are_defaulted(cluster: Cluster) -> None:
    answer = ask(cluster)
    made = {"name": "builder", "namespace": "default", "uid": "uid-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert answer.fields["metadata"] == made
    assert answer.fields["spec"] == {"audiences": [DEFAULT_ISSUER], "expirationSeconds": 3600}
    assert answer.fields["status"]["expirationTimestamp"] == "2026-01-01T01:00:00Z"
    assert answer.credential_id == f"JTI={claims(answer)['jti']}"
    assert cluster.user(answer.fields["status"]["token"])


def test_a_pods_token_names_the_pods_node(cluster: Cluster) -> None:
    about = claims(ask(cluster, {"boundObjectRef": {"kind": "Pod", "name": "p"}}))["kubernetes.io"]
    assert (about["pod"], about["node"]) == ({"name": "p", "uid": "uid-of-p"}, {"name": "n", "uid": "uid-of-n"})
    del cluster.there[NODES, Key("", "n")]
    about = claims(ask(cluster, {"boundObjectRef": {"kind": "Pod", "name": "p"}}))["kubernetes.io"]
    assert about["node"] == {"name": "n"}


BOUND = {"boundObjectRef": {"kind": "Pod", "name": "p"}, "expirationSeconds": 3607}


def test_tokens_requested_by_kubelets_live_longer_and_are_marked(cluster: Cluster) -> None:
    answer = ask(cluster, BOUND)
    said = claims(answer)
    assert said["exp"] - said["iat"] == 365 * 24 * 3600
    assert said["kubernetes.io"]["warnafter"] - said["iat"] == 3607
    assert answer.fields["status"]["expirationTimestamp"] == "2026-01-01T01:00:07Z"


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ({**BOUND, "audiences": ["other"]}, {}),
        ({**BOUND, "audiences": [DEFAULT_ISSUER, "other"]}, {}),
        ({**BOUND, "boundObjectRef": {"kind": "Secret", "name": "s"}}, {}),
        ({"expirationSeconds": 3607}, {}),
        (BOUND, {"extends": False}),
    ],
)
def test_other_tokens_do_not_live_longer(cluster: Cluster, spec: Any, options: Any) -> None:
    said = claims(ask(cluster, spec, **options))
    assert said["exp"] - said["iat"] == 3607
    assert "warnafter" not in said["kubernetes.io"]


def test_a_limit_shortens_the_expiration_with_a_warning(cluster: Cluster) -> None:
    answer = ask(cluster, {"expirationSeconds": 100_000}, longest=7200)
    assert answer.warnings == ["requested expiration of 100000 seconds shortened to 7200 seconds"]
    assert claims(answer)["exp"] - claims(answer)["iat"] == answer.fields["spec"]["expirationSeconds"] == 7200


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({"expirationSeconds": 599}, Invalid, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": (1 << 32) + 1}, Invalid, r"may not specify a duration larger than 2\^32 seconds"),
        (
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Job", "name": "j"}},
            BadRequest,
            "cannot bind token to object of type /v1, Kind=Job",
        ),
        (
            {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Pod", "name": "p"}},
            BadRequest,
            "cannot bind token to object of type apps/v1, Kind=Pod",
        ),
        ({"boundObjectRef": {"kind": "Pod", "name": ""}}, BadRequest, "Name parameter required"),
        ({"boundObjectRef": {"kind": "Pod", "name": "absent"}}, NotFound, 'pods "absent" not found'),
        ({"boundObjectRef": {"kind": "Pod", "name": "p", "uid": "old"}}, Conflict, "does not match the UID in record"),
        ({"boundObjectRef": {"kind": "Pod", "name": "foreign"}}, BadRequest, "running with different serviceaccount"),
    ],
)
def test_invalid_token_requests_are_refused(cluster: Cluster, spec: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ask(cluster, spec)


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"name": "other"}, Invalid, "must match the service account name if specified"),
        ({"namespace": "other"}, BadRequest, "the namespace of the provided object does not match"),
        ({"uid": "other"}, Conflict, r"the UID in the token request \(other\) does not match"),
    ],
)
def test_a_request_applies_to_the_account_of_its_path(
    cluster: Cluster, metadata: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ask(cluster, metadata=metadata)


def test_admission_receives_the_namespace_of_the_path(cluster: Cluster) -> None:
    requests = TokenRequests(cluster.tokens, cluster.find, clock=cluster.clock)
    asked: dict[str, Any] = {"spec": {}}
    requests.check("builder", "default", asked)
    assert asked["metadata"] == {"namespace": "default"}


TOKEN = "/api/v1/namespaces/default/serviceaccounts/builder/token"


def create_account(site: Site) -> None:
    site.ask(TOKEN.rpartition("/builder")[0], "POST", {"metadata": {"name": "builder"}})


def test_a_token_is_requested_over_http(cluster: Cluster) -> None:
    tokens = TokenRequests(cluster.tokens, cluster.find, clock=cluster.clock, longest=3600)
    with running(make(tokens=tokens)) as site:
        assert site.ask(TOKEN, "POST", {}).status == 404
        create_account(site)
        answer = site.ask(TOKEN, "POST", {"spec": {"expirationSeconds": 7000}, "more": 1})
        assert (answer.status, answer.json["kind"]) == (201, "TokenRequest")
        assert payload(answer.json["status"]["token"])["sub"] == "system:serviceaccount:default:builder"
        shortened = '299 - "requested expiration of 7000 seconds shortened to 3600 seconds"'
        assert answer.headers["warning"] in (shortened, f'299 - "unknown field \\"more\\"", {shortened}')
        assert site.ask(f"{TOKEN}?fieldValidation=Strict", "POST", {"more": 1}).status == 400


def test_without_an_issuer_the_subresource_does_not_exist() -> None:
    with running() as site:
        create_account(site)
        assert site.ask(TOKEN, "POST", {}).status == 404
