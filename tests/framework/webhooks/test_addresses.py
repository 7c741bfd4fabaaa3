"""Tests of the addresses at which the API server calls webhooks: addresses from options, local clusters, and clusters
that cannot connect to the process.
"""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ctrlmgr import cli
from ctrlmgr.api.resource import Key
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.webhooks.webhook_address import WebhookAddress, WebhookOptions, decide_address
from tests.framework.test_run import RULES


def certificate(issuer: str, *names: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def decided(server: str = "https://127.0.0.1:6443", found: bytes | None = None, **options: object) -> WebhookAddress:
    given = WebhookOptions(**options)  # type: ignore[arg-type]  # as the tests give them
    return decide_address(given, server, functions="app rules (few-pods)", certificate_of=lambda host, port: found)


def test_a_local_api_server_calls_the_loopback_address() -> None:
    address = decided(found=certificate("ctrlmgr-ca"))
    assert address.listen == ("127.0.0.1", 0)
    config = address.client_config("/rules/few-pods", 4711, "QQ==")
    assert config == {"url": "https://127.0.0.1:4711/rules/few-pods", "caBundle": "QQ=="}
    assert decided("http://[::1]:8080").client_config("/a/b", 1, "")["url"] == "https://[::1]:1/a/b"
    assert decided("https://localhost:1").listen[0] in ("127.0.0.1", "::1")
    assert decided(listen=("127.0.0.1", 5)).listen == ("127.0.0.1", 5)


@pytest.mark.parametrize(
    ("found", "host"),
    [
        (certificate("k3s-server-ca@1700000000"), "host.k3d.internal"),
        (certificate("minikubeCA"), "host.minikube.internal"),
        (certificate("kubernetes", "localhost", "docker-for-desktop"), "host.docker.internal"),
    ],
)
def test_a_cluster_in_a_container_calls_the_machines_host_name(found: bytes, host: str) -> None:
    address = decided(found=found)
    assert (address.listen, address.names) == (("0.0.0.0", 0), (host,))
    assert address.label(7) == f"https://{host}:7"


def test_an_explicit_address_overrides_the_detected_one() -> None:
    at = decided("https://192.0.2.1:6443", url="https://hooks.example.com:9443/base/")
    assert (at.listen, at.names) == (("0.0.0.0", 9443), ("hooks.example.com",))
    assert at.client_config("/a/b", 1, "")["url"] == "https://hooks.example.com:9443/base/a/b"
    behind = decided("https://192.0.2.1:6443", service=Key("shop", "hooks"))
    assert behind.listen == ("0.0.0.0", 9443)
    assert behind.names[0] == "hooks.shop.svc"
    assert behind.label(1) == "service shop/hooks"


def test_without_an_address_the_start_fails() -> None:
    for server in ("https://192.0.2.1:6443", "https://no-such-host.invalid"):
        with pytest.raises(SettingsError, match=r"functions of app rules \(few-pods\) without an address"):
            decided(server)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kubeconfig of a cluster on another machine, whose server certificate cannot be requested."""

    def unreachable(*arguments: object, **options: object) -> str:
        raise OSError("no route")

    monkeypatch.setattr("ssl.get_server_certificate", unreachable)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES)
    file = tmp_path / "elsewhere.yaml"
    file.write_text(
        "clusters: [{name: a, cluster: {server: 'https://192.0.2.1:6443'}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: ''}}]\ncurrent-context: a\n"
    )
    return str(file)


def test_the_refusal_contains_advice(elsewhere: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "rules.py", "--kubeconfig", elsewhere]) == cli.ExitCode.USAGE
    (told,) = capsys.readouterr().err.strip().splitlines()
    assert "https://192.0.2.1:6443 cannot call the admission functions of app rules (few-pods)" in told
    assert "give --webhook-url or --webhook-service, or run the controllers alone with --no-admission" in told


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--webhook-url", "http://a"], "--webhook-url is 'http://a'; it must be a URL such as"),
        (["--webhook-service", "hooks"], "--webhook-service is 'hooks'; it must be NAMESPACE/NAME"),
        (["--webhook-listen", "9443"], "--webhook-listen is '9443'; it must be HOST:PORT"),
        (["--webhook-url", "https://a", "--webhook-service", "a/b"], "exclude each other"),
    ],
)
def test_invalid_options_are_refused(
    elsewhere: str, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["run", "rules.py", "--kubeconfig", elsewhere, *arguments]) == cli.ExitCode.USAGE
    assert problem in capsys.readouterr().err


def test_an_address_in_use_is_reported_in_one_line(elsewhere: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        arguments = ["--webhook-url", "https://hooks.example.com", "--webhook-listen", listen]
        assert cli.run(["run", "rules.py", "--kubeconfig", elsewhere, *arguments]) == cli.ExitCode.USAGE
    assert f"--webhook-listen {listen}: Address already in use" in capsys.readouterr().err
