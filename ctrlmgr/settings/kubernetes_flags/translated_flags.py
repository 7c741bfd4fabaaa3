"""Translates flags of Kubernetes' programs into settings of ctrlmgr and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.kubernetes_flags.table import MEANINGS
from ctrlmgr.settings.loading import FlagValue, flags

BIND_ADDRESS: Final = "--bind-address"
SECURE_PORT: Final = "--secure-port"
ADDRESS_FLAGS: Final[Mapping[str, str]] = {
    BIND_ADDRESS: "Sets the host of `server.listen`.",
    SECURE_PORT: "Sets the port of `server.listen`.",
}
"""The two flags that together set `server.listen`, each with its description for the documentation."""

_LISTEN: Final = "server.listen"
_DEFAULT_HOST: Final = "0.0.0.0"  # kube-apiserver's default; if neither flag is given, ctrlmgr's own default applies
API_SERVER_PORT: Final = "6443"
CONTROLLER_MANAGER_PORT: Final = "10257"
_HIGHEST_PORT: Final = 65535


class Translation(NamedTuple):
    """The settings that the given flags set, by dotted key, and the warnings for the user."""

    values: Mapping[str, FlagValue]
    warnings: tuple[str, ...]


NOTHING: Final = Translation({}, ())


def meaning_texts() -> Iterator[tuple[str, str]]:
    """Yield each translated flag with its description for the documentation.

    Flags that have the same name and meaning as a setting of ctrlmgr are omitted.
    """
    own = flags().values()
    yield from ADDRESS_FLAGS.items()
    yield from ((flag, meaning.text) for flag, meaning in MEANINGS.items() if flag not in own)


def translate(given: Mapping[str, str], default_port: str = API_SERVER_PORT) -> Translation:
    """Translate flags, given as a mapping of names to values; raises `SettingsError` if a flag is refused.

    If the flags contain a host but no port, the server listens on `default_port`.
    """
    values = {_LISTEN: listen} if (listen := _listen(given, default_port)) else {}
    warnings = []
    for flag, value in given.items():
        if flag not in ADDRESS_FLAGS:
            effect = MEANINGS[flag].effect(flag, value)
            values |= {key: FlagValue(text, flag) for key, text in effect.values.items()}
            warnings += [effect.warning] if effect.warning else []
    return Translation(values, tuple(warnings))


def _listen(given: Mapping[str, str], default_port: str) -> FlagValue | None:
    """Return the listen address that the two address flags describe; None if neither flag is given."""
    if not ADDRESS_FLAGS.keys() & given.keys():
        return None
    host, port = given.get(BIND_ADDRESS, _DEFAULT_HOST), given.get(SECURE_PORT, default_port)
    if not (port.isdecimal() and 1 <= int(port) <= _HIGHEST_PORT):
        raise SettingsError(f"{SECURE_PORT} is {port!r}; it must be a port, 1 to {_HIGHEST_PORT}")
    return FlagValue(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", BIND_ADDRESS)
