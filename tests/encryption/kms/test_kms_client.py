"""Tests of the client with a real gRPC server on a Unix socket."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import REGISTRY

from ctrlmgr.clock import SystemClock
from ctrlmgr.encryption.encryption_configuration import Kms
from ctrlmgr.encryption.kms.kms_client import KmsCallFailed, KmsClient
from ctrlmgr.encryption.kms.kms_messages import Encrypted, Status, decode_plaintext, encode_plaintext

LATENCY = "apiserver_envelope_encryption_kms_operations_latency_seconds_count"


class Plugin(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """Answers Encrypt with the reversed text, and fails to decrypt the text `bad`."""

    def service(self, call: Any) -> Any:
        name = call.method.removeprefix("/v2.KeyManagementService/")
        return grpc.unary_unary_rpc_method_handler(getattr(self, name.lower()))

    def status(self, request: bytes, context: Any) -> bytes:
        return Status("v2", "ok", "key-1").encode()

    def encrypt(self, request: bytes, context: Any) -> bytes:
        return Encrypted(decode_plaintext(request)[::-1], "key-1", {"a.b": b"\xff"}).encode()

    def decrypt(self, request: bytes, context: Any) -> bytes:
        encrypted = Encrypted.decode_request(request)
        if encrypted.ciphertext == b"bad":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the ciphertext is bad")
        assert encrypted.annotations == {"a.b": b"\xff"}
        return encode_plaintext(encrypted.ciphertext[::-1]) if encrypted.ciphertext != b"odd" else b"\x0a\x7f"


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "kms.sock"


def started(socket: Path) -> Any:
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Plugin()])
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


@pytest.fixture
def client(socket: Path) -> Iterator[KmsClient]:
    client = KmsClient(Kms("example", f"unix://{socket}", "v2", "1s"), SystemClock(), random.Random(1).randbytes)
    yield client
    client.close()


def calls(method: str, code: str) -> float:
    labels = {"provider_name": "example", "method_name": f"/v2.KeyManagementService/{method}", "grpc_status_code": code}
    return REGISTRY.get_sample_value(LATENCY, labels) or 0


def test_the_client_calls_the_three_methods(client: KmsClient, socket: Path) -> None:
    server, before = started(socket), calls("Encrypt", "OK")
    assert client.status() == Status("v2", "ok", "key-1")
    encrypted = client.encrypt(b"seed")
    assert encrypted == Encrypted(b"dees", "key-1", {"a.b": b"\xff"})
    assert client.decrypt(encrypted) == b"seed"
    assert calls("Encrypt", "OK") == before + 1
    server.stop(None).wait()


def test_a_failed_call_has_the_text_of_the_plugin(client: KmsClient, socket: Path) -> None:
    server, before = started(socket), calls("Decrypt", "InvalidArgument")
    with pytest.raises(KmsCallFailed, match=r"^rpc error: code = InvalidArgument desc = the ciphertext is bad$"):
        client.decrypt(Encrypted(b"bad", "key-1"))
    assert calls("Decrypt", "InvalidArgument") == before + 1
    with pytest.raises(KmsCallFailed, match="not a message of the KMS API"):
        client.decrypt(Encrypted(b"odd", "key-1", {"a.b": b"\xff"}))
    server.stop(None).wait()


def test_a_plugin_that_does_not_run_fails_after_the_timeout_and_may_start_later(
    client: KmsClient, socket: Path
) -> None:
    with pytest.raises(KmsCallFailed, match=r"DeadlineExceeded desc = .*kms\.sock did not answer within 1 s"):
        client.status()
    server = started(socket)
    assert client.status().key_id == "key-1"
    server.stop(None).wait()


def test_a_closed_client_fails(client: KmsClient) -> None:
    client.close()
    with pytest.raises(KmsCallFailed, match="code = Canceled"):
        client.status()


def test_an_endpoint_may_be_abstract() -> None:
    name = f"ctrlmgr-tests-{id(object())}"
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Plugin()])
    server.add_insecure_port(f"unix-abstract:{name}")
    server.start()
    client = KmsClient(Kms("example", f"unix:///@{name}", "v2", "1s"), SystemClock(), random.Random(1).randbytes)
    assert client.status().healthz == "ok"
    client.close()
    server.stop(None).wait()
