"""Tests of invalid credentials: tokens that are forged, expired, for other audiences, or of deleted objects; and tests
of false headers.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ctrlmgr.authentication import jwt
from ctrlmgr.authentication.token_keys import key_id, read_private_key
from tests.e2e.serving import DEADLINE, Server, until
from tests.signatures import signature_of

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacked")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    server = Server(folder, "--controllers", "*,-pod-garbage-collector-controller")
    with server.running():
        until(lambda: server.request("GET", f"{ACCOUNTS}/default")[0] == 200)
        yield server


class TokenConnection:
    """One open connection, and the credential that the client sends with each request on this connection."""

    def __init__(self, server: Server, token: str = "") -> None:
        cluster = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self._connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, timeout=DEADLINE, context=trust)
        self._token = token
        self._socket: socket.socket | None = None

    def who(self, **headers: str) -> tuple[int, str]:
        """Return the status code and the user that the server reports; all calls use the same connection."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        self._connection.request("POST", WHO_AM_I, "{}", {"Content-Type": "application/json", **sent})
        answer = self._connection.getresponse()
        body = json.loads(answer.read())
        assert self._socket in (None, self._connection.sock), "the connection was not kept"
        self._socket = self._connection.sock
        return answer.status, body.get("status", {}).get("userInfo", {}).get(
            "username", ""
        ) if answer.status == 201 else ""

    def close(self) -> None:
        self._connection.close()


def answered(server: Server, token: str) -> int:
    """Return the status code of a request with a token."""
    with closing(TokenConnection(server, token)) as line:
        return line.who()[0]


def account(server: Server, name: str) -> Any:
    return server.create(ACCOUNTS, {"metadata": {"name": name}})


def token_of(server: Server, name: str, **spec: Any) -> str:
    token: str = server.create(f"{ACCOUNTS}/{name}/token", {"spec": spec})["status"]["token"]
    return token


def bound_to(kind: str, obj: Any) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {"apiVersion": "v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}


def forged(token: str, sign: Callable[[bytes], str], header: dict[str, str], **claims: Any) -> str:
    """Return a token with other claims, signed by the function `sign`."""
    said = {**json.loads(jwt.decoded(token.split(".")[1])), **claims}
    signed = f"{jwt.encoded(json.dumps(header).encode())}.{jwt.encoded(json.dumps(said).encode())}"
    return f"{signed}.{sign(signed.encode())}"


def test_a_tokens_user_can_be_deleted_during_a_connection(server: Server) -> None:
    account(server, "going")
    with closing(TokenConnection(server, token_of(server, "going"))) as line:
        assert line.who() == (201, "system:serviceaccount:default:going")
        assert server.request("DELETE", f"{ACCOUNTS}/going")[0] == 200
        assert line.who()[0] == 401
        account(server, "going")  # another object of the same name
        assert line.who()[0] == 401


@pytest.mark.parametrize(
    ("kind", "place", "body"),
    [
        ("Pod", PODS, {"spec": {"serviceAccountName": "binding", "containers": [{"name": "c", "image": "c"}]}}),
        ("Secret", SECRETS, {}),
    ],
)
def test_a_tokens_bound_object_can_be_recreated(server: Server, kind: str, place: str, body: Any) -> None:
    if server.request("GET", f"{ACCOUNTS}/binding")[0] == 404:
        account(server, "binding")
    made = {"metadata": {"name": "bound"}, **body}
    obj = server.create(place, made)
    token = token_of(server, "binding", boundObjectRef=bound_to(kind, obj))
    with closing(TokenConnection(server, token)) as line:
        assert line.who()[0] == 201
        assert server.request("DELETE", f"{place}/bound?gracePeriodSeconds=0")[0] == 200
        assert line.who()[0] == 401
        server.create(place, made)
        assert line.who()[0] == 401
    code, answer = server.request(
        "POST", f"{ACCOUNTS}/binding/token", {"spec": {"boundObjectRef": bound_to(kind, obj)}}
    )
    assert (code, answer["reason"]) == (409, "Conflict")


def test_a_token_in_a_secret_follows_the_secret_during_a_connection(server: Server) -> None:
    account(server, "keeping")
    about = {"name": "kept", "annotations": {"kubernetes.io/service-account.name": "keeping"}}
    server.create(SECRETS, {"metadata": about, "type": "kubernetes.io/service-account-token"})
    place = f"{SECRETS}/kept"
    until(lambda: "token" in server.request("GET", place)[1].get("data", {}))
    token = base64.b64decode(server.request("GET", place)[1]["data"]["token"]).decode()
    with closing(TokenConnection(server, token)) as line:
        assert line.who() == (201, "system:serviceaccount:default:keeping")
        assert server.request("PATCH", place, {"data": {"token": "b3RoZXI="}})[0] == 200
        assert line.who()[0] == 401
        assert server.request("PATCH", place, {"data": {"token": base64.b64encode(token.encode()).decode()}})[0] == 200
        assert line.who()[0] == 201
        assert server.request("DELETE", place)[0] == 200
        assert line.who()[0] == 401


def test_forged_tokens_are_refused(server: Server, folder: Path) -> None:
    account(server, "forged")
    token = token_of(server, "forged")
    own = read_private_key((folder / "pki" / "sa.key").read_bytes())
    other = rsa.generate_private_key(65537, 2048)
    name = key_id(own.public_key())
    public = own.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    ours: Callable[[bytes], str] = lambda data: jwt.encoded(signature_of(data, own))  # noqa: E731  # a name for it
    right = {"alg": "RS256", "kid": name}
    # so that the following token is refused because of its own error
    assert answered(server, forged(token, ours, right)) == 201

    def theirs(data: bytes) -> str:
        return jwt.encoded(signature_of(data, other))

    def shared(data: bytes) -> str:
        return jwt.encoded(hmac.digest(public, data, "sha256"))

    head, payload, signature = token.split(".")
    worthless = {
        "wrong key": forged(token, theirs, right),
        "wrong key, its own id": forged(token, theirs, {"alg": "RS256", "kid": key_id(other.public_key())}),
        "wrong key, no id": forged(token, theirs, {"alg": "RS256"}),
        "alg none": forged(token, lambda data: "", {"alg": "none", "kid": name}),
        "alg None": forged(token, lambda data: "", {"alg": "None"}),
        "the public key as a secret": forged(token, shared, {"alg": "HS256", "kid": name}),
        "another curve's algorithm": forged(token, ours, {"alg": "ES256", "kid": name}),
        "a key of its own": forged(token, theirs, {"alg": "RS256", "jwk": "{}", "jku": "https://example.invalid/"}),
        "critical extensions": forged(token, ours, {**right, "crit": "x"}),
        "expired": forged(token, ours, right, exp=1),
        "not yet": forged(token, ours, right, nbf=1 << 40),
        "foreign issuer": forged(token, ours, right, iss="https://elsewhere.example.com"),
        "foreign audience": forged(token, ours, right, aud=["https://elsewhere.example.com"]),
        "no signature": f"{head}.{payload}.",
        "a cut signature": f"{head}.{payload}.{signature[:-8]}",
        "another's claims": f"{head}.{jwt.encoded(b'{}')}.{signature}",
        "four parts": f"{token}.x",
    }
    uid = {"kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "forged", "uid": "0-0-0"}}}
    worthless["another uid"] = forged(token, ours, right, **uid)
    passed = [fault for fault, each in worthless.items() if answered(server, each) != 401]
    assert passed == []


def test_a_token_for_another_audience_is_refused(server: Server) -> None:
    account(server, "elsewhere")
    token = token_of(server, "elsewhere", audiences=["https://vault.example.com"])
    assert answered(server, token) == 401


def raw(server: Server, *lines: str, body: str = "") -> bytes:
    """Send the bytes of a request and return all received bytes."""
    parts = urlsplit(server.url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    address = (parts.hostname or "", parts.port or 0)
    with socket.create_connection(address, DEADLINE) as plain, context.wrap_socket(plain) as connection:
        text = "\r\n".join((*lines, "Host: x", "Connection: close", "", body))
        connection.sendall(text.encode("latin-1"))
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer else 0


SECRET_LIST = "GET /api/v1/secrets HTTP/1.1"


@pytest.mark.parametrize(
    "headers",
    [
        ["X-Remote-User: admin", "X-Remote-Group: system:masters"],
        ["X_Remote_User: admin", "X_Remote_Group: system:masters"],
        ["Impersonate-User: system:admin", "Impersonate-Group: system:masters"],
        ["Authorization: Bearer wrong", "Authorization: Bearer {admin}"],
        ["Authorization: Bearer wrong, Bearer {admin}"],
        ["Authorization : Bearer {admin}"],
        ["X: y\nAuthorization: Bearer {admin}"],
        ["X: y\rAuthorization: Bearer {admin}"],
        [" Authorization: Bearer {admin}"],
        ["Authorization: Bearer\t{admin}"],
        ["Authorization: Basic {admin}"],
        ["Authorization:", "Proxy-Authorization: Bearer {admin}"],
        ["Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{encoded}, x"],
    ],
)
def test_contradictory_headers_are_refused(server: Server, headers: list[str]) -> None:
    encoded = base64.urlsafe_b64encode(server.token.encode()).rstrip(b"=").decode()
    lines = [each.replace("{admin}", server.token).replace("{encoded}", encoded) for each in headers]
    assert status(raw(server, SECRET_LIST, *lines)) in (400, 401, 403)
    assert status(raw(server, SECRET_LIST, f"Authorization: Bearer {server.token}")) == 200


@pytest.mark.parametrize(
    "framing",
    [
        ["Content-Length: 4", "Transfer-Encoding: chunked"],
        ["Content-Length: 4", "Content-Length: 5"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: xchunked"],
        ["Content-Length: +4"],
    ],
)
def test_a_smuggled_request_is_not_answered(server: Server, framing: list[str]) -> None:
    hidden = f"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    answer = raw(server, "POST /version HTTP/1.1", *framing, body=f"0\r\n\r\n{hidden}")
    assert status(answer) in (400, 401, 403, 405, 501)
    assert b"SecretList" not in answer


def test_a_service_account_cannot_impersonate_others(server: Server) -> None:
    account(server, "climbing")
    line = TokenConnection(server, token_of(server, "climbing"))
    for headers in (
        {"Impersonate_User": "system:admin"},
        {"Impersonate_User": "system:serviceaccount:kube-system:namespace-controller"},
        {"Impersonate_User": "x", "Impersonate_Group": "system:masters"},
    ):
        assert line.who(**headers)[0] == 403
    assert line.who(Impersonate_Group="system:masters")[0] == 400
    assert line.who() == (201, "system:serviceaccount:default:climbing")
    line.close()


def test_a_line_removed_from_the_token_file_ends_its_connections(folder: Path, server: Server) -> None:
    file = folder / "tokens.csv"
    file.touch(mode=0o600)
    file.write_text("first-token,jane,7\nsecond-token,joe,8\n")
    with (
        closing(TokenConnection(server, "first-token")) as line,
        closing(TokenConnection(server, "second-token")) as other,
    ):
        until(lambda: line.who() == (201, "jane"))
        assert other.who() == (201, "joe")
        file.write_text("second-token,joe,8\n")
        until(lambda: line.who()[0] == 401)
        assert other.who() == (201, "joe")
