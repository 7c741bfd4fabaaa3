"""Reads the file of `--tracing-config-file`: a TracingConfiguration of apiserver.config.k8s.io.

Guarantees: for a file that kube-apiserver refuses, `read_tracing` raises an error with kube-apiserver's reason, the
file's name and the line number.

Source: component-base `tracing/api/v1/config.go`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.settings.configuration_files import read_document

VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1")
MILLION: Final = 1_000_000
DEFAULT_ENDPOINT: Final = "localhost:4317"
"""The collector's default address, on this machine, for files that contain no endpoint."""

_SCHEMES: Final = ("dns", "unix", "unix-abstract")


class TracingConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of the collector, and how many of a million traces are sampled."""

    endpoint: str | None = None
    sampling_rate_per_million: int | None = msgspec.field(default=None, name="samplingRatePerMillion")


def read_tracing(file: Path) -> TracingConfiguration:
    """Return the configuration in a file; raises `SettingsError` if the file is unreadable or not valid."""
    document = read_document(file)
    found = document.read("TracingConfiguration", VERSIONS, TracingConfiguration)
    rate = found.sampling_rate_per_million
    if rate is not None and (problem := _rate_problem(rate)):
        raise document.refuse(f"samplingRatePerMillion: Invalid value: {rate}: {problem}", "samplingRatePerMillion")
    if found.endpoint is not None and (problem := _endpoint_problem(found.endpoint)):
        raise document.refuse(f'endpoint: Invalid value: "{found.endpoint}": {problem}', "endpoint")
    return found


def _rate_problem(rate: int) -> str:
    if rate < 0:
        return "sampling rate must be positive"
    return "sampling rate per million must be less than or equal to one million" if rate > MILLION else ""


def _endpoint_problem(endpoint: str) -> str:
    scheme = urlsplit(endpoint).scheme if "//" in endpoint else "dns"
    if scheme in _SCHEMES:
        return ""
    return (
        f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  "
        "See https://github.com/grpc/grpc/blob/master/doc/naming.md"
    )
