"""A KMS plugin: it encrypts the data keys of an API server with keys in a local file.

python examples/kms.py --keys kms-keys.json --new-key
python examples/kms.py --keys kms-keys.json --socket /run/kms.sock

The plugin works with ctrlmgr and with kube-apiserver; both need an EncryptionConfiguration with this provider:

    - kms: {apiVersion: v2, name: example, endpoint: unix:///run/kms.sock}

The example shows the three methods of the KMS API v2:

- Status names the current key. The newest key of the file is the current one.
- Encrypt encrypts a data key with the current key. It returns the id of the key, and annotations, which the API server
  stores beside the data key.
- Decrypt receives all of these, and returns the data key.

The file is read at each call, so `--new-key` rotates the key of a running plugin. A real plugin calls a service that
never releases its keys, for example the KMS of a cloud.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ctrlmgr.encryption.kms.kms_messages import SERVICE, Encrypted, Status, decode_plaintext, encode_plaintext

NONCE = "nonce.kms.example.com"
"""The annotation with the nonce of AES-GCM."""


class Keys:
    """The keys in a file: a JSON object with the key of each id, in base64, oldest first."""

    def __init__(self, file: Path) -> None:
        """Use the keys in `file`, which need not exist yet."""
        self._file = file

    def all(self) -> dict[str, bytes]:
        """Return all keys by their ids, oldest first."""
        texts = json.loads(self._file.read_text()) if self._file.exists() else {}
        return {name: b64decode(text) for name, text in texts.items()}

    def add(self) -> str:
        """Add a random key, which becomes the current one, and return its id."""
        keys = self.all()
        name = f"key-{len(keys) + 1}"
        keys[name] = secrets.token_bytes(32)
        part = self._file.with_suffix(".part")
        part.touch(mode=0o600)
        part.write_text(json.dumps({name: b64encode(key).decode() for name, key in keys.items()}, indent=1))
        part.replace(self._file)
        return name


class Plugin(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """The KMS API v2."""

    def __init__(self, keys: Keys) -> None:
        """Encrypt with `keys`."""
        self._keys = keys

    def service(self, call: Any) -> Any:
        """Return the handler of a call; None if there is no such method."""
        methods: dict[str, Callable[[bytes, Any], bytes]] = {
            f"/{SERVICE}/Status": self.status,
            f"/{SERVICE}/Encrypt": self.encrypt,
            f"/{SERVICE}/Decrypt": self.decrypt,
        }
        method = methods.get(call.method)
        return method and grpc.unary_unary_rpc_method_handler(method)

    def status(self, request: bytes, context: Any) -> bytes:
        """Return the status, with the id of the current key."""
        return Status("v2", "ok", [*self._keys.all()][-1]).encode()

    def encrypt(self, request: bytes, context: Any) -> bytes:
        """Encrypt with the current key."""
        name, key = [*self._keys.all().items()][-1]
        nonce = secrets.token_bytes(12)
        encrypted = AESGCM(key).encrypt(nonce, decode_plaintext(request), name.encode())
        return Encrypted(encrypted, name, {NONCE: nonce}).encode()

    def decrypt(self, request: bytes, context: Any) -> bytes:
        """Decrypt with the key that the request names."""
        encrypted = Encrypted.decode_request(request)
        try:
            key = AESGCM(self._keys.all()[encrypted.key_id])
            return encode_plaintext(
                key.decrypt(encrypted.annotations[NONCE], encrypted.ciphertext, encrypted.key_id.encode())
            )
        except KeyError as error:
            return self._refuse(context, grpc.StatusCode.NOT_FOUND, f"there is no key or annotation {error}")
        except (InvalidTag, ValueError):
            return self._refuse(context, grpc.StatusCode.INVALID_ARGUMENT, "the ciphertext is damaged")

    def _refuse(self, context: Any, code: grpc.StatusCode, details: str) -> bytes:
        context.set_code(code)
        context.set_details(details)
        return b""


def serve(keys: Keys, socket: Path) -> None:
    """Serve the API on a Unix socket until SIGTERM or SIGINT."""
    if not keys.all():
        keys.add()
    os.umask(0o177)  # only this user may connect
    server = grpc.server(ThreadPoolExecutor(4), handlers=[Plugin(keys)])
    server.add_insecure_port(f"unix:{socket.absolute()}")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    print(f"serving the KMS API v2 at unix://{socket.absolute()}", flush=True)
    stop.wait()
    server.stop(grace=1).wait()


def main() -> None:
    """Serve the API, or add a key."""
    parser = argparse.ArgumentParser(description="A KMS plugin with keys in a local file.")
    parser.add_argument("--keys", type=Path, required=True, metavar="FILE", help="the file with the keys")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--socket", type=Path, metavar="FILE", help="serve on this Unix socket")
    what.add_argument("--new-key", action="store_true", help="add a key, which becomes the current one, and exit")
    arguments = parser.parse_args()
    keys = Keys(arguments.keys)
    if arguments.new_key:
        print(keys.add())
    else:
        serve(keys, arguments.socket)


if __name__ == "__main__":
    main()
