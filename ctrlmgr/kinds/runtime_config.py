"""Reads `--runtime-config`, which selects optional versions of API groups to serve.

Guarantees: every setting that is accepted has an effect, except settings that state the default. A version that ctrlmgr
always serves cannot be switched off, and a version that ctrlmgr does not have cannot be switched on.

Source: apiserver `pkg/server/resourceconfig/helpers.go` (`MergeAPIResourceConfigs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from ctrlmgr.errors import SettingsError
from ctrlmgr.kinds.builtin import declared
from ctrlmgr.schema import published_schema

_BOOLEANS: Final = {"": True, "true": True, "false": False}
_ALL, _GA, _BETA, _ALPHA = "api/all", "api/ga", "api/beta", "api/alpha"
_STAGES: Final = (_ALL, _GA, _BETA, _ALPHA)
"""The keys that stand for many versions; a later key overrides an earlier one, and the key of a version all of them."""


def chosen_versions(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the optional versions that `texts` (each `KEY=BOOL`) switch on, such as `resource.k8s.io/v1alpha3`.

    A key is `api/all`, `api/ga`, `api/beta`, `api/alpha` or a version. Raises `SettingsError` if a text is malformed or
    if it asks for a version that ctrlmgr cannot switch.
    """
    chosen = dict(_read(each) for each in texts if each)
    optional = optional_versions()
    for key, state in chosen.items():
        if key not in _STAGES and key not in optional:
            _check_served(key, state=state)
    if chosen.get(_GA, True) is False:
        raise SettingsError(f"--runtime-config: {_GA} cannot be false; ctrlmgr always serves these versions")
    return tuple(each for each in optional if _is_chosen(each, chosen))


@cache
def optional_versions() -> tuple[str, ...]:
    """Return the versions that can be switched on, in discovery's order."""
    names = {each.api_version for each in declared()}
    return tuple(each for each in published_schema.optional() if each in names)


def _read(text: str) -> tuple[str, bool]:
    key, _, value = (part.strip() for part in text.partition("="))
    if value not in _BOOLEANS:
        raise SettingsError(f"--runtime-config: invalid value of {key}={value}; it must be true or false")
    return key, _BOOLEANS[value]


def _is_chosen(version: str, chosen: Mapping[str, bool]) -> bool:
    stage = _ALPHA if "alpha" in version.rpartition("/")[2] else _BETA
    states = [chosen[key] for key in (_ALL, stage, version) if key in chosen]
    return bool(states) and states[-1]


def _check_served(version: str, *, state: bool) -> None:
    """Raise `SettingsError` if a version that is not optional does not have this state."""
    path = "/api/v1" if version in ("v1", "api/v1") else f"/apis/{version}"
    is_served = path in published_schema.discovery()
    if is_served and not state:
        raise SettingsError(f"--runtime-config: {version} cannot be false; ctrlmgr always serves this version")
    if not is_served and state:
        others = ", ".join(optional_versions())
        raise SettingsError(f"--runtime-config: ctrlmgr has no version {version}; it can switch on {others}")
