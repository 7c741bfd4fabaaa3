"""Reads `--runtime-config`, which selects the versions of API groups and the resources to serve.

Guarantees: every setting that is accepted has an effect, except settings that state the default. A setting for a
version overrides one for a stage, and a setting for a resource overrides one for its version. A version or resource
that ctrlmgr does not have cannot be switched on.

Source: apiserver `pkg/server/resourceconfig/helpers.go` (`MergeAPIResourceConfigs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

from ctrlmgr.errors import SettingsError
from ctrlmgr.kinds.builtin import declared
from ctrlmgr.schema import published_schema

_BOOLEANS: Final = {"": True, "true": True, "false": False}
_ALL, _GA, _BETA, _ALPHA = "api/all", "api/ga", "api/beta", "api/alpha"
_STAGES: Final = (_ALL, _GA, _BETA, _ALPHA)
"""The keys that stand for many versions; a later key overrides an earlier one."""
_CORE: Final = ("api/v1", "/v1")
"""Other names of the version of the core group, which is v1."""
_VERSION: Final = re.compile(r"v\d+(?P<stage>alpha|beta)?(\d+)?")


class ApiSelection(NamedTuple):
    """The versions (`apps/v1`, `v1`) and resources (`apps/v1/deployments`) whose state differs from the default."""

    served: tuple[str, ...] = ()
    """The versions and resources that are served although they are not by default."""
    disabled: tuple[str, ...] = ()
    """The versions and resources that are not served although they are by default."""


def selected_apis(texts: Iterable[str]) -> ApiSelection:
    """Return the versions and resources that `texts`, each `KEY=BOOL`, switch on and off.

    A key is `api/all`, `api/ga`, `api/beta`, `api/alpha`, a version or a resource of a version. Raises `SettingsError`
    if a text is malformed, or if it asks for a version or a resource that ctrlmgr does not have.
    """
    chosen = dict(_read(each) for each in texts if each)
    if chosen == {_ALL: False}:
        raise SettingsError(f"--runtime-config: only {_ALL}=false leaves nothing to serve; also switch on versions")
    _check(chosen)
    states = {version: _state(version, chosen) for version in (*_default_versions(), *optional_versions())}
    resources = {key: state for key, state in chosen.items() if _version_of(key) in states and key not in states}
    default = frozenset(_default_versions())
    on = [version for version, state in states.items() if state and version not in default]
    off = [version for version, state in states.items() if not state and version in default]
    on += [key for key, state in resources.items() if state and not states[_version_of(key)]]
    off += [key for key, state in resources.items() if not state and states[_version_of(key)]]
    return ApiSelection(tuple(on), tuple(off))


@cache
def optional_versions() -> tuple[str, ...]:
    """Return the versions that are not served by default, in discovery's order."""
    names = {each.api_version for each in declared()}
    return tuple(each for each in published_schema.optional() if each in names)


@cache
def _default_versions() -> tuple[str, ...]:
    """Return the versions that are served by default."""
    paths = [path for path, document in published_schema.discovery().items() if "resources" in document]
    return tuple(path.removeprefix("/apis/").removeprefix("/api/") for path in paths)


def _read(text: str) -> tuple[str, bool]:
    key, _, value = (part.strip() for part in text.partition("="))
    if value not in _BOOLEANS:
        raise SettingsError(f"--runtime-config: invalid value of {key}={value}; it must be true or false")
    for name in _CORE:
        if key == name or key.startswith(f"{name}/"):
            key = f"v1{key.removeprefix(name)}"
    return key, _BOOLEANS[value]


def _version_of(key: str) -> str:
    """Return the version of a key of a version or a resource."""
    parts = key.split("/")
    return parts[0] if parts[0] == "v1" else "/".join(parts[:2])


def _stage_of(version: str) -> str:
    """Return the key that stands for all versions of the stage of `version`."""
    found = _VERSION.fullmatch(version.rpartition("/")[2])
    return {None: _GA, "alpha": _ALPHA, "beta": _BETA}[found["stage"] if found else None]


def _state(version: str, chosen: Mapping[str, bool]) -> bool:
    """Return whether a version is served."""
    states = [chosen[key] for key in (_ALL, _stage_of(version), version) if key in chosen]
    return states[-1] if states else version in _default_versions()


def _check(chosen: Mapping[str, bool]) -> None:
    """Raise `SettingsError` if a setting switches on a version or a resource that ctrlmgr does not have."""
    for key, state in chosen.items():
        version = _version_of(key)
        if key in _STAGES or not state:
            continue
        if version not in _default_versions() and version not in optional_versions():
            others = ", ".join(optional_versions())
            raise SettingsError(f"--runtime-config: ctrlmgr has no version {version}; it can switch on {others}")
        path = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        names = {each["name"] for each in published_schema.resource_lists()[path]["resources"]}
        if key != version and key.removeprefix(f"{version}/") not in names:
            raise SettingsError(f"--runtime-config: {version} has no resource {key.removeprefix(f'{version}/')}")
