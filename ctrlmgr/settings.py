"""Every setting: its type, its default, and how flags, environment and a TOML file become one `Settings`.

Guarantees:
- Precedence: flag > `CTRLMGR_SECTION_KEY` > file > default, key by key; `Loaded.origins` says which one it was.
- Nothing wrong gets through: a wrong value, key or variable is a one-line `SettingsError` that says where it is,
  what is wrong and what would be right.
- `Settings` is frozen, and each part of ctrlmgr is given its own section, never the whole.

Durations are float seconds here and `"15s"` in text. `settings.toml` shows every key (a test compares the two).
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

from ctrlmgr.errors import SettingsError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
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
    "log.level": "--log-level",
    "log.format": "--log-format",
}
"""The keys that can be given on the command line, and how."""


class Kind(NamedTuple):
    """A kind of value: `read` turns what TOML or text holds into it, or raises ValueError; `expects` is for people."""

    expects: str
    read: Callable[[Any], Any]


def parse_duration(text: str) -> float:
    """Read `"1h30m"`, `"15s"` or `"250ms"` as seconds; raises ValueError."""
    if text != "0" and not _DURATION.fullmatch(text):
        raise ValueError(text)
    return float(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def format_duration(seconds: float) -> str:
    """Write seconds as `parse_duration` reads them, in the largest units: `"1h30m"`."""
    rest, parts = round(seconds * 1000), []
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, round(_UNITS[unit] * 1000))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _read_duration(value: Any) -> float:
    if not isinstance(value, str):
        raise TypeError(value)
    return parse_duration(value)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _read_listen(value: Any) -> str:
    text = _read_text(value)
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= 65535):
        raise ValueError(value)
    return text


def _read_address(value: Any) -> str:
    text = _read_text(value)
    return text and str(ipaddress.ip_address(text))


def _read_ranges(value: Any) -> str:
    networks = [ipaddress.ip_network(part.strip()) for part in _read_text(value).split(",")]
    if len({network.version for network in networks}) != len(networks):
        raise ValueError(value)
    return ",".join(str(network) for network in networks)


def _read_ports(value: Any) -> str:
    first, _, last = _read_text(value).partition("-")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= 65535):
        raise ValueError(value)
    return f"{int(first)}-{int(last)}"


def _read_list(value: Any) -> tuple[str, ...]:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
        raise ValueError(value)
    return tuple(items)


def _whole(minimum: int) -> Kind:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError(value)
        if (number := int(value)) < minimum:
            raise ValueError(value)
        return number

    return Kind(f"a whole number of at least {minimum}", read)


def _one_of(*words: str) -> Kind:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(value)
        return str(value)

    return Kind("one of " + ", ".join(f'"{word}"' for word in words), read)


_TEXT = Kind("a text", _read_text)
_DURATION_KIND = Kind('a duration such as "15s", "10m" or "1h30m"', _read_duration)
_LISTEN = Kind('HOST:PORT such as "127.0.0.1:6443", "[::1]:6443" or "0.0.0.0:0" (any free port)', _read_listen)
_ADDRESS = Kind('an IP address such as "192.0.2.10", or empty', _read_address)
_RANGES = Kind(
    'a range such as "10.96.0.0/16", or one of each family such as "10.96.0.0/16,fd00:10:96::/112"', _read_ranges
)
_PORTS = Kind('a range of ports such as "30000-32767"', _read_ports)
_NAMES = Kind('a list of names such as ["ctrlmgr.example.com", "192.0.2.10"]', lambda value: _read_list(value or []))
_LIST = Kind('a list of names such as ["*", "-endpoint-controller"]', _read_list)


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What compaction leaves of one resource: each object's newest `keep` events, and all younger than `keep_for`."""

    keep: Annotated[int, _whole(1)] = 1
    keep_for: Annotated[float, _DURATION_KIND] = 0.0


def _read_retentions(value: Any) -> Mapping[str, Retention]:
    """Read the table of `[compaction.resources]`; in an environment variable it is an inline TOML table."""
    table = tomllib.loads(f"table = {value}")["table"] if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise TypeError(value)
    return {resource: _read_retention(resource, rule) for resource, rule in table.items()}


def _read_retention(resource: str, rule: Any) -> Retention:
    kinds = _kinds(Retention)
    if not _RESOURCE.fullmatch(resource) or not isinstance(rule, dict) or not rule or not rule.keys() <= kinds.keys():
        raise ValueError(resource)
    return Retention(**{key: kinds[key].read(value) for key, value in rule.items()})


_RETENTIONS = Kind(
    'resources and what to keep of each, such as "events" = { keep = 2, keep_for = "1h" }', _read_retentions
)


@dataclass(frozen=True, kw_only=True)
class DatabaseSettings:
    """Where the event log and its anchor are; see `Settings.database_url` and `anchor_path` for what empty means."""

    url: Annotated[str, _TEXT] = ""
    anchor: Annotated[str, _TEXT] = ""


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Where `serve` answers and whom it believes; an empty `advertise_address` is found out, see `serve`.

    `shutdown_delay` is in seconds, `max_reads` and `max_writes` are requests at a time.
    """

    listen: Annotated[str, _LISTEN] = "127.0.0.1:6443"
    advertise_address: Annotated[str, _ADDRESS] = ""
    certificate_names: Annotated[tuple[str, ...], _NAMES] = ()
    tokens: Annotated[str, _TEXT] = ""
    shutdown_delay: Annotated[float, _DURATION_KIND] = 0.0
    max_reads: Annotated[int, _whole(1)] = 400
    max_writes: Annotated[int, _whole(1)] = 200

    @property
    def address(self) -> tuple[str, int]:
        """The host, without an IPv6 address' brackets, and the port."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """What Services are given: ClusterIPs from one range a family, node ports from another (both ends included).

    The rest is about the `kubernetes` service: `kubernetes_service_node_port` 0 means that it has none;
    `apiserver_count` is how many servers there are, for the reconciler that must be told.
    """

    cluster_ip_range: Annotated[str, _RANGES] = "10.96.0.0/16"
    node_port_range: Annotated[str, _PORTS] = "30000-32767"
    kubernetes_service_node_port: Annotated[int, _whole(0)] = 0
    endpoint_reconciler_type: Annotated[str, _one_of("lease", "master-count", "none")] = "lease"
    apiserver_count: Annotated[int, _whole(1)] = 1


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Which controllers run: `*` is all of them, `-name` leaves one out (kube-controller-manager's `--controllers`)."""

    enabled: Annotated[tuple[str, ...], _LIST] = ("*",)


@dataclass(frozen=True, kw_only=True)
class EndpointsSettings:
    """The endpoints controller; `batch_period` is how long (seconds) a pod's change waits for more of them."""

    workers: Annotated[int, _whole(1)] = 2
    batch_period: Annotated[float, _DURATION_KIND] = 0.0


@dataclass(frozen=True, kw_only=True)
class NamespaceSettings:
    """The namespace controller; `deletion_grace` is in seconds."""

    deletion_grace: Annotated[float, _DURATION_KIND] = 5.0


@dataclass(frozen=True, kw_only=True)
class WatchCacheSettings:
    """The bounded history that all readers share, in events."""

    capacity: Annotated[int, _whole(1)] = 10_000


@dataclass(frozen=True, kw_only=True)
class CompactionSettings:
    """When old events are forgotten and of which resources; of one that is not named everything is kept."""

    every: Annotated[float, _DURATION_KIND] = 300.0
    min_age: Annotated[float, _DURATION_KIND] = 600.0
    min_revisions: Annotated[int, _whole(0)] = 10_000
    resources: Annotated[Mapping[str, Retention], _RETENTIONS] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What ctrlmgr says of itself on stderr."""

    level: Annotated[str, _one_of("debug", "info", "warning", "error")] = "info"
    format: Annotated[str, _one_of("console", "json")] = "console"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of it. `data_dir` may start with `~`."""

    data_dir: Annotated[str, _TEXT] = "~/.local/state/ctrlmgr"
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    endpoints: EndpointsSettings = field(default_factory=EndpointsSettings)
    namespace: NamespaceSettings = field(default_factory=NamespaceSettings)
    watch_cache: WatchCacheSettings = field(default_factory=WatchCacheSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    log: LogSettings = field(default_factory=LogSettings)

    @property
    def database_url(self) -> str:
        """The database's URL, spelled out."""
        return self.database.url or f"sqlite:///{self.data_path / 'ctrlmgr.db'}"

    @property
    def data_path(self) -> Path:
        """The directory for what is kept on disk."""
        return Path(self.data_dir).expanduser()

    @property
    def anchor_path(self) -> Path | None:
        """The anchor's file: beside a SQLite database, in `data_dir` for another; None for a log in memory."""
        if self.database.anchor:
            return Path(self.database.anchor).expanduser()
        scheme, _, rest = self.database_url.partition("://")
        if scheme == "sqlite":
            return Path(rest.removeprefix("/") + "-anchor")
        place = rest.rpartition("@")[2].partition("?")[0]
        return self.data_path / f"{_UNSAFE.sub('-', place)}.anchor" if place else None


class Loaded(NamedTuple):
    """Settings, and for each key (`log.level`) where its value came from: `default`, a file, a variable or a flag."""

    settings: Settings
    origins: Mapping[str, str]


class _Raw(NamedTuple):
    value: Any
    origin: str


@cache
def _kinds(section: type[Any]) -> dict[str, Kind]:
    """Return the leaves of a settings class by dotted key, in order."""
    kinds: dict[str, Kind] = {}
    for name, hint in get_type_hints(section, include_extras=True).items():
        if isinstance(hint, type) and is_dataclass(hint):
            kinds.update({f"{name}.{key}": kind for key, kind in _kinds(hint).items()})
        else:
            kinds[name] = hint.__metadata__[0]
    return kinds


def keys() -> list[str]:
    """Return every key, dotted, in the order of `settings.toml`."""
    return list(_kinds(Settings))


def variable(key: str) -> str:
    """Return the environment variable of a key: `log.level` is `CTRLMGR_LOG_LEVEL`."""
    return "CTRLMGR_" + key.replace(".", "_").upper()


def value_of(settings: Settings, key: str) -> Any:
    """Return a setting by its dotted key."""
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Loaded:
    """Merge the three sources and check everything; `flags` are by dotted key, None where not given.

    Without `file` the one that `CTRLMGR_SETTINGS` names is read, if it names one. Raises `SettingsError`.
    """
    if file is None and environment.get("CTRLMGR_SETTINGS"):
        file = Path(environment["CTRLMGR_SETTINGS"])
    raw = {
        **(_from_file(file) if file else {}),
        **_from_environment(environment),
        **{key: _Raw(value, FLAGS[key]) for key, value in flags.items() if value is not None},
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
    kind = _kinds(Settings)[key]
    try:
        return kind.read(raw.value)
    except (ValueError, TypeError) as error:
        place = raw.origin if raw.origin.startswith(("-", "environment")) else f"{raw.origin}: {key}"
        raise SettingsError(f"{place} is {raw.value!r}; it must be {kind.expects}") from error
