"""Creates the certificates of webhooks: a certificate authority for the app, and a serving certificate that it signs.

Guarantees: private keys are stored only in a temporary directory of this user and, behind a Service, in a Secret that
the processes share. The serving certificate is renewed before it expires; its authority stays the same.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SECRETS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.errors import AlreadyExists, SettingsError
from ctrlmgr.framework.children import to_object
from ctrlmgr.framework.remote.api_server_log import RemoteLog
from ctrlmgr.http.tls import CertificateFiles, ensure_certificates, write_private

log = structlog.get_logger(__name__)

RENEW: Final = 3600.0
"""Seconds between checks of whether the serving certificate expires soon."""


class WebhookCertificates:
    """The certificates of one webhook server."""

    def __init__(self, names: Sequence[str], *, clock: Clock) -> None:
        """Create certificates for `names`, which are host names or IP addresses."""
        self._names = names
        self._clock = clock
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """The TLS context of the server; it contains a certificate once `ensure` was called."""
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2

    @property
    def _files(self) -> CertificateFiles:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="ctrlmgr-webhooks-")
        return CertificateFiles(Path(self._folder.name))

    def ensure(self) -> bytes:
        """Create missing certificates, and renew a certificate that expires soon.

        Return the certificate of the authority in PEM.
        """
        ensure_certificates(self._files.directory, self._names, clock=self._clock)
        self.context.load_cert_chain(self._files.serving, self._files.serving_key)
        return self._files.authority.read_bytes()

    def share(self, secret: Key, event_log: RemoteLog, client: EngineClient) -> None:
        """Use the certificate authority in `secret`, which is created if it does not exist.

        Raises `ApiError` if a request fails.
        """
        stored = event_log.get(SECRETS, secret)
        if stored is None:
            self.ensure()
            try:
                client.create(_secret(secret, self._files))
            except AlreadyExists:  # Another process has created the Secret first.
                stored = event_log.get(SECRETS, secret)
        if stored is not None:
            self._take(secret, stored)

    def _take(self, secret: Key, stored: Object) -> None:
        """Write the certificate authority that the Secret contains to the files."""
        data = stored.to_dict().get("data") or {}
        try:
            authority, key = (base64.b64decode(data[name], validate=True) for name in ("ca.crt", "ca.key"))
        except (KeyError, ValueError) as error:
            raise SettingsError(
                f"the Secret {secret} has no ca.crt and ca.key; delete it, so that it is created again"
            ) from error
        write_private(self._files.authority_key, key)
        write_private(self._files.authority, authority)

    def close(self) -> None:
        """Remove the files with the certificates and keys."""
        if self._folder is not None:
            self._folder.cleanup()


def _secret(key: Key, files: CertificateFiles) -> Object:
    data = {"ca.crt": files.authority, "ca.key": files.authority_key}
    fields = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "type": "Opaque",
        "data": {name: base64.b64encode(path.read_bytes()).decode() for name, path in data.items()},
    }
    return to_object(fields, SECRETS)
