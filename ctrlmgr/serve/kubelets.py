"""Creates connections to kubelets from the settings.

The process imports the code for these connections at the first request to a kubelet.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.clock import Clock
from ctrlmgr.http.tls import CertificateFiles, issue_client_certificate
from ctrlmgr.server.container_connector import Kubelets, Make
from ctrlmgr.settings.kubelet_settings import KubeletSettings


def kubelets_of(settings: KubeletSettings, files: CertificateFiles, *, clock: Clock) -> Make:
    """Return a function that creates the connections to kubelets; `files` are the files of the server's own authority.

    The function reads the certificates that the settings name, and raises `SettingsError` if they cannot be used.
    """

    def issue(user: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        return issue_client_certificate(files, user, groups, clock=clock)

    def make() -> Kubelets:
        from ctrlmgr.server.kubelets.proxying import KubeletProxy

        return KubeletProxy(settings, issue, clock=clock)

    if settings.client_certificate or settings.certificate_authority:
        found = make()
        return lambda: found
    return make
