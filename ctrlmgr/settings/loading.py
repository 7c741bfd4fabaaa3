"""How flags, environment and a TOML file become one `Settings`."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.kinds import DURATION, format_duration, kinds_of
from ctrlmgr.settings.sections import Retention, Settings

_OF_A_SERVICE = re.compile(r"CTRLMGR_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)")
"""The variables that Kubernetes makes for a service called ctrlmgr."""


FLAGS = {
    "data_dir": "--data-dir",
    "database.url": "--database",
    "database.anchor": "--anchor",
    "server.listen": "--listen",
    "server.advertise_address": "--advertise-address",
    "service.cluster_ip_range": "--service-cluster-ip-range",
    "service.node_port_range": "--service-node-port-range",
    "service.kubernetes_service_node_port": "--kubernetes-service-node-port",
    "controllers.enabled": "--controllers",
    "controllers.concurrent_service_endpoint_syncs": "--concurrent-service-endpoint-syncs",
    "controllers.mirroring_concurrent_service_endpoint_syncs": "--mirroring-concurrent-service-endpoint-syncs",
    "controllers.concurrent_namespace_syncs": "--concurrent-namespace-syncs",
    "controllers.concurrent_gc_syncs": "--concurrent-gc-syncs",
    "controllers.concurrent_ttl_after_finished_syncs": "--concurrent-ttl-after-finished-syncs",
    "controllers.start_interval": "--controller-start-interval",
    "endpoints.workers": "--concurrent-endpoint-syncs",
    "leader_election.enabled": "--leader-elect",
    "leader_election.lease_duration": "--leader-elect-lease-duration",
    "leader_election.renew_deadline": "--leader-elect-renew-deadline",
    "leader_election.retry_period": "--leader-elect-retry-period",
    "leader_election.resource_name": "--leader-elect-resource-name",
    "leader_election.resource_namespace": "--leader-elect-resource-namespace",
    "log.level": "--log-level",
    "log.format": "--log-format",
}
"""The keys that can be given on the command line, and how."""

SWITCHES = {"server.role": ("--api-only", "--controllers-only")}
"""The keys of which some values have a flag each, called like the value."""


class Loaded(NamedTuple):
    """Settings, and for each key (`log.level`) where its value came from: `default`, a file, a variable or a flag."""

    settings: Settings
    origins: Mapping[str, str]


class _Raw(NamedTuple):
    value: Any
    origin: str


def keys() -> list[str]:
    """Return every key, dotted, in the order of `settings.toml`."""
    return list(kinds_of(Settings))


def variable(key: str) -> str:
    """Return the environment variable of a key: `log.level` is `CTRLMGR_LOG_LEVEL`."""
    return "CTRLMGR_" + key.replace(".", "_").upper()


def value_of(settings: Settings, key: str) -> Any:
    """Return a setting by its dotted key."""
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def plain_value(settings: Settings, key: str) -> Any:
    """Return a setting as TOML and JSON have it: durations as text, tuples as lists."""
    value = value_of(settings, key)
    if kinds_of(Settings)[key] is DURATION:
        return format_duration(value)
    if isinstance(value, Mapping):
        return {resource: _plain_retention(rule) for resource, rule in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _plain_retention(rule: Retention) -> dict[str, Any]:
    return {**asdict(rule), "keep_for": format_duration(rule.keep_for)}


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Loaded:
    """Merge the three sources and check everything; `flags` are by dotted key, None where not given.

    Without `file` the one that `CTRLMGR_SETTINGS` names is read, if it names one. Raises `SettingsError`.
    """
    if file is None and environment.get("CTRLMGR_SETTINGS"):
        file = Path(environment["CTRLMGR_SETTINGS"])
    raw = {
        **(_from_file(file) if file else {}),
        **_from_environment(environment),
        **{key: _Raw(value, FLAGS.get(key, f"--{value}")) for key, value in flags.items() if value is not None},
    }
    origins = {key: raw[key].origin if key in raw else "default" for key in keys()}
    return Loaded(_build(Settings, raw), origins)


def _from_file(file: Path) -> dict[str, _Raw]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: the settings file cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from error
    return {key: _Raw(value, str(file)) for key, value in _flatten(table, "", str(file))}


def _flatten(table: Mapping[str, Any], prefix: str, origin: str) -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        key = prefix + name
        if key in keys():
            yield key, value
        elif isinstance(value, dict) and any(known.startswith(key + ".") for known in keys()):
            yield from _flatten(value, key + ".", origin)
        else:
            raise SettingsError(f"{origin}: there is no setting {key!r}{_did_you_mean(key, keys())}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, _Raw]:
    """Take the variables that name a setting, and refuse those that nearly do.

    Others starting with CTRLMGR_ are left alone, above all those that Kubernetes puts into the pods beside a service.
    """
    variables = {variable(key): key for key in keys()}
    for name in environment.keys() - variables.keys() - {"CTRLMGR_SETTINGS"}:
        if name.startswith("CTRLMGR_") and not _OF_A_SERVICE.match(name) and (hint := _did_you_mean(name, variables)):
            raise SettingsError(f"environment: {name} is not a setting's variable{hint}")
    return {
        key: _Raw(environment[name], f"environment {name}") for name, key in variables.items() if name in environment
    }


def _did_you_mean(word: str, words: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(words), n=1, cutoff=0.75)
    return f"; did you mean {close[0]!r}?" if close else ""


def _build(section: type[Any], raw: Mapping[str, _Raw], prefix: str = "") -> Any:
    hints = get_type_hints(section)
    values = {}
    for name in (each.name for each in fields(section)):
        key = prefix + name
        if is_dataclass(hints[name]):
            values[name] = _build(hints[name], raw, key + ".")
        elif key in raw:
            values[name] = _read(key, raw[key])
    return section(**values)


def _read(key: str, raw: _Raw) -> Any:
    kind = kinds_of(Settings)[key]
    try:
        return kind.read(raw.value)
    except (ValueError, TypeError) as error:
        place = raw.origin if raw.origin.startswith(("-", "environment")) else f"{raw.origin}: {key}"
        raise SettingsError(f"{place} is {raw.value!r}; it must be {kind.expects}") from error
