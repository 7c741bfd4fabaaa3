"""Decides the content of the ConfigMap `kube-system/extension-apiserver-authentication`.

Guarantees: the content of the ConfigMap is the union of all servers' settings. Each server adds its own certificate
authorities and names, in a fixed order. The controller removes only expired certificates from the ConfigMap.

Source: `pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ctrlmgr.api.object import Object

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"

_CLIENTS: Final = "client-ca-file"
_PROXIES: Final = "requestheader-client-ca-file"


@dataclass(frozen=True, kw_only=True)
class ClusterAuthentication:
    """The client authentication settings of a server.

    Each field with certificate authorities contains PEM; the field is empty if there are no certificate authorities.
    """

    client_ca: str = ""
    proxy_ca: str = ""
    proxy_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    @property
    def lists(self) -> Mapping[str, Sequence[str]]:
        """The published settings for authenticating proxies, keyed by their keys in the ConfigMap."""
        return {
            "requestheader-allowed-names": self.proxy_names,
            "requestheader-extra-headers-prefix": self.extra_prefixes,
            "requestheader-group-headers": self.group_headers,
            "requestheader-uid-headers": self.uid_headers,
            "requestheader-username-headers": self.username_headers,
        }


class _ConfigMap(msgspec.Struct, frozen=True, gc=False):
    data: dict[str, str] | None = None


def desired_config_map(own: ClusterAuthentication, current: Object | None, now: float) -> Object | None:
    """Return the ConfigMap to publish at `now` (seconds since 1970); None if `current` is up to date."""
    data = dict((current.view(_ConfigMap).data or {}) if current is not None else {})
    desired = dict(data)
    _put(desired, _CLIENTS, _united_certificates(data.get(_CLIENTS, ""), own.client_ca, now))
    if own.proxy_ca:
        _put(desired, _PROXIES, _united_certificates(data.get(_PROXIES, ""), own.proxy_ca, now))
        for key, values in own.lists.items():
            desired[key] = msgspec.json.encode(_united(data.get(key, ""), values)).decode()
    if desired == data and current is not None:
        return None
    head = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": NAME, "namespace": NAMESPACE}}
    return Object.from_dict({**(head if current is None else current.to_dict()), "data": desired})


def _put(data: dict[str, str], key: str, value: str) -> None:
    if value:
        data[key] = value
    else:
        data.pop(key, None)


def _united(published: str, own: Iterable[str]) -> list[str]:
    try:
        before = msgspec.json.decode(published or "[]", type=list[str])
    except msgspec.MsgspecError:
        before = []
    return list(dict.fromkeys([*before, *own]))


def _united_certificates(published: str, own: str, now: float) -> str:
    found: dict[bytes, None] = {}
    for text in (published, own):
        for each in _read(text):
            if each.not_valid_after_utc.timestamp() >= now:
                found[each.public_bytes(Encoding.PEM)] = None
    return b"".join(found).decode()


def _read(pem: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode()) if pem else []
    except ValueError:
        return []


Current = Callable[[], ClusterAuthentication]
"""The type of a function that returns this server's current client authentication settings."""
