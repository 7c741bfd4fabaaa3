"""Reads and checks an EncryptionConfiguration (apiserver.config.k8s.io/v1), with kube-apiserver's texts.

Guarantees: an invalid file raises one `SettingsError` with the line of the first problem. No error message contains a
key.

Source: apiserver `pkg/apis/apiserver/validation/validation_encryption.go`, `pkg/server/options/encryptionconfig`.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.configuration_files import Document, read_document

_VERSIONS: Final = ("apiserver.config.k8s.io/v1",)
_AES_SIZES: Final = (16, 24, 32)
_SECRETBOX_SIZES: Final = (32,)
_INTERNAL: Final = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
EVERY: Final = Resource("*", "*")
"""Represents `*.*`: all resources of all API groups."""

_ONE = "at least one {} is required"
_OVERLAP = (
    "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be "
    "masked"
)
_STAR = "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
_EVENTS = (
    "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
)

_At = tuple[str | int, ...]


class _Key(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    secret: str = ""


class _Keys(msgspec.Struct, forbid_unknown_fields=True):
    keys: list[_Key] = msgspec.field(default_factory=list)


class Kms(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A key management service: a gRPC server on a Unix socket."""

    name: str = ""
    endpoint: str = ""
    api_version: str = "v1"
    timeout: str = "3s"
    cachesize: int | None = None


class _NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the provider `identity`, which has none."""


class Provider(msgspec.Struct, forbid_unknown_fields=True):
    """One element of a list of providers; a valid element has exactly one field."""

    aesgcm: _Keys | None = None
    aescbc: _Keys | None = None
    secretbox: _Keys | None = None
    identity: _NoFields | None = None
    kms: Kms | None = None

    def named(self) -> list[str]:
        """Return the names of the providers in this element."""
        return [name for name in self.__struct_fields__ if getattr(self, name) is not None]


class _Rule(msgspec.Struct, forbid_unknown_fields=True):
    resources: list[str] = msgspec.field(default_factory=list)
    providers: list[Provider] = msgspec.field(default_factory=list)


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    resources: list[_Rule] = msgspec.field(default_factory=list)


class NamedKey(NamedTuple):
    """A key of the configuration: the provider's name, the key's name, and its bytes."""

    provider: str
    name: str
    secret: bytes


def read_configuration(file: Path) -> dict[Resource, list[NamedKey | Kms]]:
    """Return the providers of each resource, in order; a `*` in a resource means all resources or all groups.

    Raises `SettingsError` if the file is invalid.
    """
    document = read_document(file)
    configuration = document.read("EncryptionConfiguration", _VERSIONS, _Configuration)
    problem = next(_problems(configuration), None)
    if problem is not None:
        at, text = problem
        raise document.refuse(f"{_path(at)}: {text}", *at)
    found: dict[Resource, list[NamedKey | Kms]] = {}
    for index, rule in enumerate(configuration.resources):
        providers = [each for provider in rule.providers for each in _keys(provider)]
        for resource in map(Resource.parse, rule.resources):
            _refuse_masked(document, found, resource, ("resources", index, "resources"))
            found.setdefault(resource, []).extend(providers)
    return found


def _keys(provider: Provider) -> Iterator[NamedKey | Kms]:
    if provider.kms is not None:
        yield provider.kms
        return
    name = provider.named()[0]
    if provider.identity is not None:
        yield NamedKey(name, "", b"")
        return
    for key in getattr(provider, name).keys:
        yield NamedKey(name, key.name, b64decode(key.secret))


def _refuse_masked(document: Document, found: dict[Resource, Any], resource: Resource, at: _At) -> None:
    for earlier in (Resource(resource.group, "*"), EVERY):
        if earlier in found:
            raise document.refuse(f'resource "{_shown(resource)}" is masked by earlier rule "{_shown(earlier)}"', *at)


def _shown(resource: Resource) -> str:
    return "*." if resource == Resource("", "*") else str(resource)


def _path(at: _At) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")


def _invalid(value: object, detail: str) -> str:
    return f"Invalid value: {msgspec.json.encode(value).decode()}: {detail}"


def _required(detail: str) -> str:
    return f"Required value: {detail}"


def _problems(configuration: _Configuration) -> Iterator[tuple[_At, str]]:
    """Yield the place and the text of each problem, in kube-apiserver's order."""
    if not configuration.resources:
        yield ("resources",), _required(_ONE.format("resources"))
    names: set[str] = set()
    for index, rule in enumerate(configuration.resources):
        at: _At = ("resources", index, "resources")
        if not rule.resources:
            yield at, _required(_ONE.format(_path(at)))
        yield from _overlaps(rule.resources, at)
        for number, name in enumerate(rule.resources):
            if detail := _refused_name(name):
                yield (*at, number), _invalid(name, detail)
        at = ("resources", index, "providers")
        if not rule.providers:
            yield at, _required(_ONE.format(_path(at)))
        for number, provider in enumerate(rule.providers):
            yield from _provider_problems(provider, (*at, number), names)


def _overlaps(names: Sequence[str], at: _At) -> Iterator[tuple[_At, str]]:
    resources = [Resource.parse(name) for name in names]
    if len(set(resources)) < len(resources):
        yield at, _invalid(names, "the same resource cannot be specified multiple times")
    for resource in set(resources):
        others = [other for other in resources if other != resource]
        if others and (resource == EVERY or (resource.plural == "*" and resource.group in {o.group for o in others})):
            yield at, _invalid(names, _OVERLAP)
            return


def _refused_name(name: str) -> str | None:
    """Return the reason why a name in the list of resources is invalid; None if the name is valid."""
    plural, group = Resource.parse(name).plural, Resource.parse(name).group
    if name.lower() != name:
        return "resource name should not contain capital letters"
    if name == "*":
        return _STAR
    if name in _INTERNAL:
        return "resources which do not have REST API/s cannot be encrypted"
    if group == "events.k8s.io":
        return _EVENTS
    if group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if group == "*" and plural != "*":
        return "encrypting the same resource across groups is not supported"
    return None


def _provider_problems(provider: Provider, at: _At, kms_names: set[str]) -> Iterator[tuple[_At, str]]:
    found = provider.named()
    if not found:
        expected = "KMS, AESGCM, AESCBC, Secretbox, Identity"
        yield at, _invalid({}, f"provider does not contain any of the expected providers: {expected}")
    elif len(found) > 1:
        text = "more than one provider specified in a single element, should split into different list elements"
        yield at, _invalid(found, text)
    if provider.kms is not None:
        yield from _kms_problems(provider.kms, (*at, "kms"), kms_names)
        kms_names.add(provider.kms.name)
        return
    for name, sizes in (("aesgcm", _AES_SIZES), ("aescbc", _AES_SIZES), ("secretbox", _SECRETBOX_SIZES)):
        keys: _Keys | None = getattr(provider, name)
        if keys is not None:
            if not keys.keys:
                yield (*at, name, "keys"), _required(_ONE.format("keys"))
            for number, key in enumerate(keys.keys):
                yield from _key_problems(key, (*at, name, "keys", number), sizes)
            return


def _key_problems(key: _Key, at: _At, sizes: Sequence[int]) -> Iterator[tuple[_At, str]]:
    if not key.name:
        yield (*at, "name"), _required("name is a mandatory field for a key")
    if not key.secret:
        yield (*at, "secret"), _required("secret is a mandatory field for a key")
        return
    try:
        length = len(b64decode(key.secret, validate=True))
    except (binascii.Error, ValueError):
        yield (*at, "secret"), _invalid("REDACTED", "secrets must be base64 encoded")
        return
    if length not in sizes:
        expected = " ".join(map(str, sizes))
        text = f"secret is not of the expected length, got {length}, expected one of [{expected}]"
        yield (*at, "secret"), _invalid("REDACTED", text)


def _kms_problems(kms: Kms, at: _At, names: set[str]) -> Iterator[tuple[_At, str]]:
    if not kms.name:
        yield (*at, "name"), _required("name is a mandatory field for a provider")
    if kms.api_version != "v1" and ":" in kms.name:
        yield (*at, "name"), _invalid(kms.name, f"invalid KMS provider name {kms.name}, must not contain ':'")
    if kms.name in names:
        text = f"duplicate KMS provider name {kms.name}, names must be unique"
        yield (*at, "name"), _invalid(kms.name, text)
    if timeout_of(kms) <= 0:
        yield (*at, "timeout"), _invalid(kms.timeout, "timeout should be a positive value")
    if not kms.endpoint:
        yield (*at, "endpoint"), _invalid("", "endpoint is a mandatory field for a kms")
    elif (scheme := urlsplit(kms.endpoint).scheme) != "unix":
        text = f'unsupported scheme "{scheme}" for KMS provider, only unix is supported'
        yield (*at, "endpoint"), _invalid(kms.endpoint, text)
    if kms.api_version != "v1" and kms.cachesize is not None:
        yield (*at, "cachesize"), _invalid(kms.cachesize, "cachesize is not supported in v2")
    if kms.api_version not in ("v1", "v2"):
        text = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"
        yield (*at, "apiVersion"), _invalid(kms.api_version, text)
    elif kms.api_version == "v1":
        yield (*at, "apiVersion"), _invalid("v1", "KMSv1 is deprecated and disabled; use apiVersion: v2")


def timeout_of(kms: Kms) -> float:
    """Return a KMS provider's timeout of calls in seconds; 0 if the configured text is not a duration."""
    from ctrlmgr.settings.setting_types import parse_duration

    try:
        return parse_duration(kms.timeout)
    except (SettingsError, ValueError):
        return 0.0
