"""Calls a KMS plugin over gRPC on a Unix socket.

Guarantees: a call ends within the configured timeout. If the plugin does not run, a call waits for the plugin until the
timeout. A failed call raises `KmsCallFailed` with the text that kube-apiserver shows.

Source: apiserver `pkg/storage/value/encrypt/envelope/kmsv2/grpc_service.go`, `envelope/metrics/metrics.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar
from uuid import UUID

from prometheus_client import Histogram

from ctrlmgr.clock import Clock
from ctrlmgr.encryption.encryption_configuration import Kms, timeout_of
from ctrlmgr.encryption.key_ciphers import RandomBytes
from ctrlmgr.encryption.kms.kms_messages import SERVICE, Encrypted, Status, decode_plaintext, encode_plaintext
from ctrlmgr.errors import BadRequest, SettingsError

T = TypeVar("T")

_LATENCY: Final = Histogram(
    "apiserver_envelope_encryption_kms_operations_latency_seconds",
    "The duration of calls of a KMS plugin, by the status of gRPC.",
    ["provider_name", "method_name", "grpc_status_code"],
    buckets=[0.0001 * 2**step for step in range(20)],
)
_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    # The client reconnects to a restarted plugin within a call's timeout, which is 3 seconds by default.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


class KmsCallFailed(Exception):
    """Raised if a call of a KMS plugin fails."""


class KmsClient:
    """The client of one KMS plugin; an instance is thread-safe."""

    def __init__(self, kms: Kms, clock: Clock, random: RandomBytes) -> None:
        """Create a client, which connects at its first call; raises `SettingsError` if gRPC is not installed."""
        try:
            import grpc
        except ImportError as error:
            raise SettingsError("the provider kms needs the package grpcio: pip install 'ctrlmgr[kms]'") from error
        self._grpc = grpc
        self._name = kms.name
        self._endpoint = kms.endpoint
        self._timeout = timeout_of(kms)
        self._clock = clock
        self._random = random
        self._channel = grpc.insecure_channel(_target(kms.endpoint), options=_OPTIONS)

    def status(self) -> Status:
        """Return the status of the plugin."""
        return self._call("Status", b"", Status.decode)

    def encrypt(self, plaintext: bytes) -> Encrypted:
        """Return the encrypted value."""
        return self._call("Encrypt", encode_plaintext(plaintext, self._uid()), Encrypted.decode)

    def decrypt(self, encrypted: Encrypted) -> bytes:
        """Return the decrypted value."""
        return self._call("Decrypt", encrypted.encode_request(self._uid()), decode_plaintext)

    def close(self) -> None:
        """Close the connection; running calls fail."""
        self._channel.close()

    def _uid(self) -> str:
        """Return the id of a request, which the plugin may log."""
        return str(UUID(bytes=self._random(16), version=4))

    def _call(self, method: str, request: bytes, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(self._answer(f"/{SERVICE}/{method}", request))
        except (BadRequest, UnicodeDecodeError) as error:
            raise KmsCallFailed(f"the answer is not a message of the KMS API: {error}") from error

    def _answer(self, path: str, request: bytes) -> bytes:
        began, code = self._clock.monotonic(), "OK"
        try:
            answer: bytes = self._channel.unary_unary(path)(request, timeout=self._timeout, wait_for_ready=True)
        except self._grpc.RpcError as error:
            code = _code(error)
            raise KmsCallFailed(f"rpc error: code = {code} desc = {self._description(code, error)}") from error
        except ValueError as error:  # the connection was closed
            code = "Canceled"
            raise KmsCallFailed(f"rpc error: code = {code} desc = {error}") from error
        finally:
            _LATENCY.labels(self._name, path, code).observe(self._clock.monotonic() - began)
        return answer

    def _description(self, code: str, error: Any) -> str:
        """Return the text of an error; if the plugin did not answer in time, the text names the plugin's socket."""
        if code == "DeadlineExceeded":
            return f"context deadline exceeded: {self._endpoint} did not answer within {self._timeout:g} s"
        return str(error.details())


def _target(endpoint: str) -> str:
    """Return gRPC's name of an endpoint; a path that begins with `@` is in the abstract namespace of Linux."""
    path = endpoint.removeprefix("unix://")
    return f"unix-abstract:{path[2:]}" if path.startswith("/@") else f"unix:{path}"


def _code(error: Any) -> str:
    """Return the name of a status code of gRPC as Go spells it."""
    name: str = error.code().name
    return {"CANCELLED": "Canceled", "OK": "OK"}.get(name, name.title().replace("_", ""))
