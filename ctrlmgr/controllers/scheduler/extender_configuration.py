"""Reads and checks the `extenders` of a KubeSchedulerConfiguration, with kube-scheduler's rules and messages."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Sequence
from pathlib import Path as File
from typing import Final

import msgspec

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.controllers.scheduler.extender_calls import ExtenderSettings
from ctrlmgr.engine.validation.name_formats import qualified_name
from ctrlmgr.engine.validation.quantities import is_extended
from ctrlmgr.golang.go_duration import MalformedDuration, parse_go_duration

_TIMEOUT: Final = 5.0
"""Seconds after which a call of an extender ends if the configuration does not set a timeout."""


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """ExtenderTLSConfig."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class Managed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """ExtenderManagedResource."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Extender."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: Tls | None = None
    http_timeout: str = ""
    node_cache_capable: bool = False
    managed_resources: tuple[Managed, ...] = ()
    ignorable: bool = False


def validate_extenders(extenders: Sequence[ExtenderFields], path: Path) -> Iterator[FieldError]:
    """Yield the errors in the configuration of extenders (`validateExtenders`)."""
    managed: set[str] = set()
    for index, each in enumerate(extenders):
        at = path.at(index)
        if each.prioritize_verb and each.weight <= 0:
            yield invalid(at.child("weight"), each.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(each.managed_resources):
            name = at.child("managedResources").at(number).child("name")
            yield from _resource_name(resource.name, name)
            if resource.name in managed:
                yield invalid(name, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(each.bind_verb) for each in extenders)
    if binders > 1:
        yield invalid(path, f"found {binders} extenders implementing bind", "only one extender can implement bind")


def _resource_name(name: str, path: Path) -> Iterator[FieldError]:
    problems = qualified_name(name)
    for each in problems:
        yield invalid(path, name, each)
    if not problems and not is_extended(name):
        yield invalid(path, name, "is an invalid extended resource name")


def extender_settings(given: ExtenderFields, folder: File) -> ExtenderSettings:
    """Return the settings of an extender.

    Raises `ValueError` if the settings are unusable, and `OSError` if a file cannot be read.

    Relative file names refer to `folder`.
    """
    tls = given.tls_config or Tls()
    authorities = _pem(tls.ca_data, tls.ca_file, folder)
    if tls.insecure and authorities:
        raise ValueError("specifying a root certificates file with the insecure flag is not allowed")
    certificate, key = _pem(tls.cert_data, tls.cert_file, folder), _pem(tls.key_data, tls.key_file, folder)
    if bool(certificate) != bool(key):
        raise ValueError("tlsConfig: a client certificate needs both a certificate and a key")
    return ExtenderSettings(
        url=given.url_prefix,
        filter_verb=given.filter_verb,
        prioritize_verb=given.prioritize_verb,
        preempt_verb=given.preempt_verb,
        bind_verb=given.bind_verb,
        weight=given.weight,
        timeout=_seconds(given.http_timeout),
        caches_nodes=given.node_cache_capable,
        managed=frozenset(each.name for each in given.managed_resources),
        is_ignorable=given.ignorable,
        authorities=authorities,
        certificate=certificate + b"\n" + key if certificate else b"",
        server_name=tls.server_name,
        is_verified=not tls.insecure and (bool(authorities) or not given.enable_https),
    )


def _seconds(text: str) -> float:
    try:
        return (parse_go_duration(text) / 1e9 if text else 0.0) or _TIMEOUT
    except MalformedDuration as error:
        raise ValueError(f"httpTimeout: {error}") from error


def _pem(data: str, file: str, folder: File) -> bytes:
    """Return PEM from a base64 text or, if the text is empty, from a file."""
    try:
        return b64decode(data, validate=True) if data else (folder / file).read_bytes() if file else b""
    except Base64Error as error:
        raise ValueError(f"tlsConfig: {error}") from error
