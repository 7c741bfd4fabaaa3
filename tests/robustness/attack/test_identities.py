"""Tests of claimed identities: the server accepts identities only from a trusted proxy, and certificates only while
their authority is trusted.

Each attack is made on a running server over TLS, with the client certificate that it needs.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from cryptography import x509

from ctrlmgr.testing.served import ServerProcess
from tests.authentication.authorities import CLIENT, SERVER, CertificateAndKey, make, subject
from tests.e2e.serving import until

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
Headers = Sequence[tuple[str, str]]
ANN = [("X-Remote-User", "ann"), ("X-Remote-Group", "dev"), ("X-Remote-Uid", "7"), ("X-Remote-Extra-Scopes", "all")]
CREDENTIAL = ("authentication.kubernetes.io/credential-id",)
CONFIGURATION = """apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
"""


def certificate(
    name: str | None, issuer: CertificateAndKey, *, days: int = 1, usage: x509.ObjectIdentifier = CLIENT
) -> CertificateAndKey:
    now = datetime.now(UTC)
    begins, ends = now - timedelta(days=2), now + timedelta(days=days)
    return make(subject(name), issuer, usages=(usage,), begins=begins, ends=ends)


def an_authority(name: str) -> CertificateAndKey:
    now = datetime.now(UTC)
    begins, ends = now - timedelta(days=2), now + timedelta(days=2)
    return make(subject(name), is_authority=True, begins=begins, ends=ends)


class IdentityAnswer(NamedTuple):
    """The status code of a response, and the user name that the server reports."""

    code: int
    name: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


class TrustingServer:
    """A server that trusts one certificate authority for clients, and another for proxies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clients, self.proxies = an_authority("clients"), an_authority("proxies")
        self.admit("/livez", "/readyz")
        (folder / "clients.crt").write_bytes(self.clients.pem)
        (folder / "proxies.crt").write_bytes(self.proxies.pem)
        flags = {
            "client-ca-file": folder / "clients.crt",
            "requestheader-client-ca-file": folder / "proxies.crt",
            "requestheader-allowed-names": "front-proxy",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-uid-headers": "X-Remote-Uid",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "authentication-config": folder / "authentication.yaml",
        }
        self.server = ServerProcess(folder, *(f"--{name}={value}" for name, value in flags.items()))

    def admit(self, *paths: str) -> None:
        """URL paths that need no credentials."""
        lines = "".join(f"  - path: {path}\n" for path in paths)
        (self.folder / "authentication.yaml").write_text(CONFIGURATION + lines)

    def connect(self, made: CertificateAndKey | None = None) -> http.client.HTTPSConnection:
        """Return a connection with this client certificate."""
        trust: ssl.SSLContext = self.server.trust
        if made is not None:
            chain = self.folder / f"{made.certificate.serial_number}.pem"
            chain.write_bytes(made.pem + made.key_pem)
            trust.load_cert_chain(chain)
        where = urlsplit(self.server.url)
        return http.client.HTTPSConnection(where.hostname or "", where.port, timeout=30, context=trust)

    def told(self, made: CertificateAndKey | None = None, headers: Headers = ()) -> IdentityAnswer:
        """Return the user that the server reports for a request with a certificate and these headers."""
        with closing(self.connect(made)) as connection:
            return reported_user(connection, headers)

    def code(self, path: str, method: str = "GET") -> int:
        """Return the response to a request without credentials."""
        with closing(self.connect()) as connection:
            connection.request(method, path)
            return connection.getresponse().status


def reported_user(connection: http.client.HTTPSConnection, headers: Headers = ()) -> IdentityAnswer:
    connection.putrequest("POST", WHO_AM_I)
    for name, value in [("Content-Type", "application/json"), ("Content-Length", "2"), *headers]:
        connection.putheader(name, value)
    connection.endheaders(b"{}")
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != http.HTTPStatus.CREATED:
        return IdentityAnswer(answer.status)
    user = json.loads(body)["status"]["userInfo"]
    return IdentityAnswer(answer.status, user["username"], tuple(user["groups"]), tuple(user.get("extra", ())))


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrustingServer]:
    attacked = TrustingServer(tmp_path_factory.mktemp("identities"))
    with attacked.server:
        yield attacked


def test_a_trusted_proxy_determines_the_user(attacked: TrustingServer) -> None:
    told = attacked.told(certificate("front-proxy", attacked.proxies), ANN)
    assert told == (201, "ann", ("dev", "system:authenticated"), ("scopes",))


def strangers(attacked: TrustingServer) -> dict[str, tuple[CertificateAndKey | None, int]]:
    """Return certificates, and the response to a request with each certificate; the request's headers name a user."""
    elsewhere = an_authority("proxies")
    return {
        "no certificate": (None, 401),
        "another name": (certificate("back-proxy", attacked.proxies), 401),
        "no name": (certificate(None, attacked.proxies), 401),
        "time is over": (certificate("front-proxy", attacked.proxies, days=-1), 401),
        "for servers": (certificate("front-proxy", attacked.proxies, usage=SERVER), 401),
        "another authority of the same name": (certificate("front-proxy", elsewhere), 401),
        "the authority itself": (attacked.proxies, 401),
        "a client's": (certificate("front-proxy", attacked.clients), 201),  # a user of that name, and not a proxy
    }


@pytest.mark.parametrize(
    "which",
    [
        *("no certificate", "another name", "no name", "time is over", "for servers"),
        *("another authority of the same name", "the authority itself", "a client's"),
    ],
)
def test_other_clients_cannot_determine_the_user(attacked: TrustingServer, which: str) -> None:
    made, code = strangers(attacked)[which]
    told = attacked.told(made, ANN)
    assert (told.code, told.name) == (code, "front-proxy" if code == http.HTTPStatus.CREATED else "")
    assert "dev" not in told.groups


@pytest.mark.parametrize(
    "headers",
    [
        [("X_Remote_User", "ann")],
        [("X-Remote-User ", "ann")],
        [("X-Remote-Group", "system:masters")],
        [("X-Remote-User", ""), ("X-Remote-Group", "system:masters")],
        [("Impersonate-User", "ann")],
    ],
)
def test_invalid_names_make_no_user(attacked: TrustingServer, headers: Headers) -> None:
    assert attacked.told(certificate("front-proxy", attacked.proxies), headers).code in (400, 401, 403)


def test_the_first_of_several_names_counts(attacked: TrustingServer) -> None:
    proxy = certificate("front-proxy", attacked.proxies)
    assert attacked.told(proxy, [("x-remote-user", "ann"), ("X-Remote-User", "system:admin")]).name == "ann"


def test_proxy_headers_do_not_override_credentials(attacked: TrustingServer) -> None:
    token = ("Authorization", f"Bearer {attacked.server.token}")
    assert attacked.told(None, [*ANN, token]).name == "system:admin"
    jane = certificate("jane", attacked.clients)
    assert attacked.told(jane, ANN) == (201, "jane", ("system:authenticated",), CREDENTIAL)


def test_a_proxy_itself_is_no_user(attacked: TrustingServer) -> None:
    assert attacked.told(certificate("front-proxy", attacked.proxies)).code == 401
    assert attacked.told(certificate("system:admin", attacked.proxies)).code == 401


def test_unauthenticated_clients_can_read_only_the_named_paths(attacked: TrustingServer) -> None:
    assert [attacked.code(path) for path in ("/livez", "/readyz", "/livez?verbose")] == [200, 200, 200]
    closed = ["/version", "/livez/", "/livez/ping", "//livez", "/livez/../api", "/api", "/healthz", "/%6civez/"]
    assert [path for path in closed if attacked.code(path) != 401] == []
    attacked.admit("/version")
    until(lambda: attacked.code("/version") == 200)
    assert attacked.code("/livez") == 401
    (attacked.folder / "authentication.yaml").write_text("kind: X\n")
    until(lambda: "reloading files failed" in attacked.server.output)
    assert (attacked.code("/version"), attacked.code("/livez")) == (200, 401), "the last good one stays"
    attacked.admit("/livez", "/readyz")
    until(lambda: attacked.code("/livez") == 200)


def test_a_certificate_expires_with_its_authority_on_an_open_connection(attacked: TrustingServer) -> None:
    jane, file = certificate("jane", attacked.clients), attacked.folder / "clients.crt"
    joe = certificate("joe", attacked.proxies)
    with closing(attacked.connect(jane)) as connection:
        assert reported_user(connection).name == "jane"
        kept = connection.sock
        file.write_bytes(an_authority("clients").pem)  # an authority of the same name, with another key
        until(lambda: reported_user(connection).code == 401)
        assert connection.sock is kept
        assert attacked.told(joe).code == 401
        file.write_bytes(attacked.clients.pem)
        until(lambda: reported_user(connection).name == "jane")
