"""Provides the client certificate with which a server calls extension servers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from ctrlmgr.clock import Clock
from ctrlmgr.controllers.horizontal_pod_autoscaler import Options
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.front_proxy import FrontProxyCertificate, own_front_proxy
from ctrlmgr.http.tls import CertificateFiles
from ctrlmgr.settings import Settings

_DIRECTORY: Final = "front-proxy"


def front_proxy_certificate(settings: Settings, files: CertificateFiles, *, clock: Clock) -> FrontProxyCertificate:
    """Return the client certificate; if the settings name none, create one in the authority's directory.

    Raises `SettingsError` if the client certificate cannot be used or created.
    """
    options = settings.of(Options)
    named = [options.proxy_client_cert_file, options.proxy_client_key_file]
    if all(named):
        certificate, key = (Path(each).expanduser() for each in named)
        return FrontProxyCertificate(certificate, key)
    if any(named):
        raise SettingsError("--proxy-client-cert-file and --proxy-client-key-file go together")
    return FrontProxyCertificate(*own_front_proxy(_directory(files), clock=clock))


def with_front_proxy(settings: Settings, certificate: FrontProxyCertificate) -> Settings:
    """Return settings with which the autoscaler presents this client certificate to the servers of metrics APIs."""
    file, key = map(str, certificate.files)
    options = replace(settings.of(Options), proxy_client_cert_file=file, proxy_client_key_file=key)
    return replace(settings, declared={**settings.declared, Options: options})


def _directory(files: CertificateFiles) -> Path:
    """Return the directory that processes share, unless the directory lacks the certificate and is not writable."""
    shared = files.common / _DIRECTORY
    return shared if shared.exists() or os.access(files.common, os.W_OK) else files.directory / _DIRECTORY
