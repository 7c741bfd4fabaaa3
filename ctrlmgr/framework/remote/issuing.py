"""The files with which controllers in a separate process sign tokens and certificates, and publish the cluster's CA.

Guarantees: a controller that needs such a file runs only if the settings name the file, as in kube-controller-manager.
An unusable file raises a `SettingsError` before any controller starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ctrlmgr.authentication.jwt import PrivateKey
from ctrlmgr.authentication.token_keys import read_private_key
from ctrlmgr.authentication.user import User
from ctrlmgr.controllers import certificatesigningrequest_signing as signing
from ctrlmgr.controllers.issuer_dependencies import Identity
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.remote.remote_access_reviews import AccessReviews
from ctrlmgr.framework.remote.remote_api import Api
from ctrlmgr.settings import Settings
from ctrlmgr.settings.kubeconfig import Access

_CSRS: Final = {"group": "certificates.k8s.io", "resource": "certificatesigningrequests", "name": "*", "verb": "create"}


class IssuerFiles:
    """The files that the settings of one process name."""

    def __init__(self, settings: Settings, access: Access) -> None:
        """Read no file yet; the certificate authority in `access` is the default of `controllers.root_ca_file`."""
        options = settings.of(signing.Options)
        self._key_file = settings.service_accounts.private_key_file
        self._root_ca_file = settings.controllers.root_ca_file
        self._authority = access.authority
        self._pair = options.cluster_signing_cert_file, options.cluster_signing_key_file
        self._needs = {
            "certificatesigningrequest-approving-controller": "",
            signing.DESCRIPTOR.name: "" if all(self._pair) else "--cluster-signing-cert-file and its key",
            "serviceaccount-token-controller": "" if self._key_file else "--service-account-private-key-file",
            "root-ca-certificate-publisher-controller": ""
            if self._root_ca_file or access.authority
            else "--root-ca-file",
        }

    def problem(self, controller: str) -> str | None:
        """Return the reason why a controller cannot run; None if it can run or needs none of these files."""
        missing = self._needs.get(controller)
        return f"needs {missing}" if missing else None

    def supports(self, controller: str) -> bool:
        """Return whether the controller signs or publishes with these files."""
        return controller in self._needs

    @property
    def root_ca(self) -> str:
        """The certificate authority that the controllers publish (PEM); raises `SettingsError` if it is unusable."""
        named = self._root_ca_file
        return self._read("controllers.root_ca_file", named).decode() if named else self._authority.decode()

    def identity(self, api: Api) -> Identity:
        """Return the keys and the check of permissions; raises `SettingsError` if a file cannot be used."""
        reviews = AccessReviews(api)

        def may_ask(user: User, subresource: str) -> bool:
            return reviews.allows(user, {"resourceAttributes": {**_CSRS, "subresource": subresource}})

        certificate, key = self._pair
        return Identity(self._token_key, Path(certificate), Path(key), may_ask)

    def _token_key(self) -> PrivateKey:
        data = self._read("service_accounts.private_key_file", self._key_file)
        try:
            return read_private_key(data)
        except ValueError as error:
            raise SettingsError(f"service_accounts.private_key_file: {self._key_file} is no key: {error}") from error

    @staticmethod
    def _read(setting: str, file: str) -> bytes:
        try:
            return Path(file).expanduser().read_bytes()
        except OSError as error:
            raise SettingsError(f"{setting}: {file} cannot be read: {error.strerror}") from error
