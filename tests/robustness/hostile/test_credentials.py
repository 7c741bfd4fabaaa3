"""Tests of false credentials: they never give access by accident, and responses reveal no secrets."""

from __future__ import annotations

import json
import ssl
from base64 import urlsafe_b64encode
from datetime import timedelta
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.http.tls import CertificateFiles, ensure_certificates, issue_client_certificate
from tests.robustness.hostile.raw import Reply, ask, connect, head, receive
from tests.robustness.serving import ConfiguredServer
from tests.robustness.statuses import is_status

MAPS = "/api/v1/namespaces/default/configmaps"
PUBLIC = ("/livez", "/readyz", "/healthz", "/version")
PRIVATE = (
    MAPS,
    "/api/v1/secrets",
    "/api/v1/nothings",
    "/api",
    "/apis",
    "/openapi/v2",
    "/openapi/v3",
    "/metrics",
    "/configz",
    "/debug/pprof/profile",
    "/",
    "/nowhere",
    f"{MAPS}?watch=true",
    f"{MAPS}?fieldSelector=metadata.name%3Da",
)


def jwt(header: dict[str, str], payload: dict[str, object], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(payload).encode(), signature]
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


CLAIMS: dict[str, object] = {
    "iss": "https://kubernetes.default.svc.cluster.local",
    "sub": "system:serviceaccount:kube-system:default",
    "aud": ["https://kubernetes.default.svc.cluster.local"],
    "exp": 4102444800,
    "iat": 1,
}
TOKENS = {
    "garbage": "x",
    "the first half": "",  # the name of the real account, inserted below
    "another case": "",
    "unsigned": jwt({"alg": "none", "typ": "JWT"}, CLAIMS),
    "unsigned, in capitals": jwt({"alg": "NONE"}, CLAIMS),
    "signed with nothing": jwt({"alg": "HS256", "typ": "JWT"}, CLAIMS, b"x" * 32),
    "of a key elsewhere": jwt({"alg": "ES256", "kid": "../../../../etc/passwd"}, CLAIMS, b"x" * 64),
    "of a short signature": jwt({"alg": "ES256"}, CLAIMS, b"x"),
    "of dots": "..",
    "of no JSON": "e30.e30.e30",
    "long": "x" * 60_000,
    "not ASCII": "\xff\xfe",
}


@pytest.mark.parametrize("path", PUBLIC)
def test_every_user_can_read_health_and_version(target: ConfiguredServer, path: str) -> None:
    assert ask(target.site, "GET", path, headers={"authorization": None}).code == 200
    assert ask(target.site, "POST", path, headers={"authorization": None}).code == 403


@pytest.mark.parametrize("path", PRIVATE)
def test_authenticated_users_can_read_nothing_else(target: ConfiguredServer, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        reply = ask(target.site, method, path, headers={"authorization": None})
        assert (reply.code, is_status(reply)) == (403, True), (method, reply)
        assert 'User "system:anonymous"' in reply.fields["message"]


@pytest.mark.parametrize("name", TOKENS)
def test_unknown_tokens_are_refused(target: ConfiguredServer, name: str) -> None:
    real = target.site.token
    token = {"the first half": real[:32], "another case": real.upper()}.get(name, TOKENS[name])
    for path in (MAPS, "/readyz", "/nowhere"):
        reply = ask(target.site, "GET", path, headers={"authorization": f"Bearer {token}"})
        assert (reply.code, is_status(reply), reply.fields["message"]) == (401, True, "Unauthorized"), reply


@pytest.mark.parametrize("value", ["Bearer", "Bearer ", "Basic YWRtaW46YWRtaW4=", "Negotiate x", "", "bearer\t"])
def test_invalid_tokens_are_refused(target: ConfiguredServer, value: str) -> None:
    assert ask(target.site, "GET", MAPS, headers={"authorization": value}).code in (401, 403)


def test_a_claimed_identity_without_credentials_is_ignored(target: ConfiguredServer) -> None:
    claims = {"impersonate-user": "system:admin", "impersonate-group": "system:masters"}
    headers = {"authorization": None, "x-remote-user": "system:admin", "x-remote-group": "system:masters", **claims}
    assert ask(target.site, "GET", MAPS, headers=headers).code == 403
    named, grouped = (
        ask(target.site, "GET", MAPS, headers={"authorization": None, name: claims[name]}) for name in claims
    )
    assert (named.code, grouped.code) == (403, 400)  # groups can only be impersonated together with a user
    plain = ask(target.site, "GET", MAPS, headers={"impersonate-user": "jane"})
    assert plain.code == 403
    assert ask(target.site, "GET", "/debug/pprof/profile", headers={"impersonate-user": "jane"}).code == 403


def test_tokens_are_never_logged(target: ConfiguredServer) -> None:
    ask(target.site, "GET", f"{MAPS}?token={target.site.token[:32]}")
    assert target.site.token[:32] not in target.log
    assert "Bearer" not in target.log


@pytest.fixture
def files(target: ConfiguredServer) -> CertificateFiles:
    return CertificateFiles(target.folder / "pki")


def trust(target: ConfiguredServer, folder: Path, pair: tuple[bytes, bytes]) -> ssl.SSLContext:
    """Return the TLS context of a client with this client certificate."""
    (folder / "client.crt").write_bytes(pair[0])
    (folder / "client.key").write_bytes(pair[1])
    context = ssl.create_default_context(cafile=str(target.authority))
    context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return context


def answer(target: ConfiguredServer, context: ssl.SSLContext, path: str = MAPS) -> Reply:
    with connect(target.site, context) as connection:
        connection.sendall(head(target.site, "GET", path, {"authorization": None}))
        return receive(connection)


def test_a_certificate_of_the_servers_authority_authenticates(
    target: ConfiguredServer, files: CertificateFiles, tmp_path: Path
) -> None:
    jane = issue_client_certificate(files, "jane", [], clock=SystemClock())
    refused = answer(target, trust(target, tmp_path, jane))
    assert refused.code == 403
    assert 'User "jane" cannot list' in refused.fields["message"]
    assert answer(target, trust(target, tmp_path, jane), "/version").code == 200
    assert answer(target, trust(target, tmp_path, jane), "/debug/pprof/profile").code == 403


def strangers(files: CertificateFiles, folder: Path) -> dict[str, tuple[bytes, bytes]]:
    """Return certificates that the server must refuse, although each certificate names an administrator."""
    clock, masters = SystemClock(), ["system:masters"]
    other = ensure_certificates(folder / "other", ["localhost"], clock=clock)
    past = issue_client_certificate(files, "admin", masters, clock=clock, life=timedelta(minutes=-1))
    return {
        "of another authority": issue_client_certificate(other, "system:admin", masters, clock=clock),
        "expired": past,
        "for servers": (files.serving.read_bytes(), files.serving_key.read_bytes()),
        "another authority itself": (other.authority.read_bytes(), other.authority_key.read_bytes()),
    }


@pytest.mark.parametrize("name", ["of another authority", "expired", "for servers", "another authority itself"])
def test_other_certificates_do_not_authenticate(
    target: ConfiguredServer, files: CertificateFiles, tmp_path: Path, name: str
) -> None:
    assert answer(target, trust(target, tmp_path, strangers(files, tmp_path)[name])).code == 401
