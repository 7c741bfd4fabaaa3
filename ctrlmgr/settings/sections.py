"""Every setting: its type and its default. `settings.toml` shows every key (a test compares the two).

`Settings` is frozen, and each part of ctrlmgr is given its own section, never the whole.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ctrlmgr.settings.kinds import (
    ADDRESS,
    DURATION,
    LIST,
    LISTEN,
    NAMES,
    PORTS,
    RANGES,
    SWITCH,
    TEXT,
    Kind,
    kinds_of,
    one_of,
    whole,
)

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What compaction leaves of one resource: each object's newest `keep` events, and all younger than `keep_for`."""

    keep: Annotated[int, whole(1)] = 1
    keep_for: Annotated[float, DURATION] = 0.0


def _read_retentions(value: Any) -> Mapping[str, Retention]:
    """Read the table of `[compaction.resources]`; in an environment variable it is an inline TOML table."""
    table = tomllib.loads(f"table = {value}")["table"] if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise TypeError(value)
    return {resource: _read_retention(resource, rule) for resource, rule in table.items()}


def _read_retention(resource: str, rule: Any) -> Retention:
    kinds = kinds_of(Retention)
    if not _RESOURCE.fullmatch(resource) or not isinstance(rule, dict) or not rule or not rule.keys() <= kinds.keys():
        raise ValueError(resource)
    return Retention(**{key: kinds[key].read(value) for key, value in rule.items()})


def _default_retentions() -> Mapping[str, Retention]:
    """Return the rules for what processes write at all times to say that they are there."""
    return {
        "masterleases.internal.ctrlmgr.io": Retention(keep=1),
        "leases.coordination.k8s.io": Retention(keep=1, keep_for=3600.0),
    }


_RETENTIONS = Kind(
    'resources and what to keep of each, such as "events" = { keep = 2, keep_for = "1h" }', _read_retentions
)


@dataclass(frozen=True, kw_only=True)
class DatabaseSettings:
    """Where the event log and its anchor are; see `Settings.database_url` and `anchor_path` for what empty means.

    `pool_size` is how many connections to PostgreSQL a process reads with.
    """

    url: Annotated[str, TEXT] = ""
    anchor: Annotated[str, TEXT] = ""
    pool_size: Annotated[int, whole(2)] = 8


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Where `serve` answers and whom it believes; an empty `advertise_address` is found out, see `serve`.

    `role` says whether this process serves the API, may run the controllers, or both. `shutdown_delay` is in seconds,
    `max_reads` and `max_writes` are requests at a time.
    """

    role: Annotated[str, one_of("all", "api-only", "controllers-only")] = "all"
    listen: Annotated[str, LISTEN] = "127.0.0.1:6443"
    advertise_address: Annotated[str, ADDRESS] = ""
    certificate_names: Annotated[tuple[str, ...], NAMES] = ()
    tokens: Annotated[str, TEXT] = ""
    shutdown_delay: Annotated[float, DURATION] = 0.0
    max_reads: Annotated[int, whole(1)] = 400
    max_writes: Annotated[int, whole(1)] = 200

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

    cluster_ip_range: Annotated[str, RANGES] = "10.96.0.0/16"
    node_port_range: Annotated[str, PORTS] = "30000-32767"
    kubernetes_service_node_port: Annotated[int, whole(0)] = 0
    endpoint_reconciler_type: Annotated[str, one_of("lease", "master-count", "none")] = "lease"
    apiserver_count: Annotated[int, whole(1)] = 1


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Which controllers run: `*` is all of them, `-name` leaves one out (kube-controller-manager's `--controllers`).

    `root_ca_file` is the certificate that is published in every namespace; empty: that of our own authority.
    """

    enabled: Annotated[tuple[str, ...], LIST] = ("*",)
    concurrent_service_endpoint_syncs: Annotated[int, whole(1)] = 2
    mirroring_concurrent_service_endpoint_syncs: Annotated[int, whole(1)] = 2
    concurrent_namespace_syncs: Annotated[int, whole(1)] = 5
    concurrent_gc_syncs: Annotated[int, whole(1)] = 5
    concurrent_ttl_after_finished_syncs: Annotated[int, whole(1)] = 5
    start_interval: Annotated[float, DURATION] = 0.0
    root_ca_file: Annotated[str, TEXT] = ""


@dataclass(frozen=True, kw_only=True)
class LeaderElectionSettings:
    """Who runs the controllers when several processes could; the durations are in seconds, see `leaderelection`.

    With `enabled` false this process runs them whoever else does.
    """

    enabled: Annotated[bool, SWITCH] = True
    lease_duration: Annotated[float, DURATION] = 15.0
    renew_deadline: Annotated[float, DURATION] = 10.0
    retry_period: Annotated[float, DURATION] = 2.0
    resource_name: Annotated[str, TEXT] = "ctrlmgr"
    resource_namespace: Annotated[str, TEXT] = "kube-system"


@dataclass(frozen=True, kw_only=True)
class EndpointsSettings:
    """The endpoints controller; `batch_period` is how long (seconds) a pod's change waits for more of them."""

    workers: Annotated[int, whole(1)] = 2
    batch_period: Annotated[float, DURATION] = 0.0


@dataclass(frozen=True, kw_only=True)
class NamespaceSettings:
    """The namespace controller; `deletion_grace` is in seconds."""

    deletion_grace: Annotated[float, DURATION] = 5.0


@dataclass(frozen=True, kw_only=True)
class EventSettings:
    """Events (core/v1); `ttl` is for how long (seconds) one is kept after it has last changed, 0: forever."""

    ttl: Annotated[float, DURATION] = 3600.0


@dataclass(frozen=True, kw_only=True)
class PodGarbageCollectorSettings:
    """The pod garbage collector; `terminated_pod_threshold` is how many pods that have ended are kept, 0: all."""

    terminated_pod_threshold: Annotated[int, whole(0)] = 12_500


@dataclass(frozen=True, kw_only=True)
class WatchCacheSettings:
    """The bounded history that all readers share, in events."""

    capacity: Annotated[int, whole(1)] = 10_000


@dataclass(frozen=True, kw_only=True)
class CompactionSettings:
    """When old events are forgotten and of which resources; of one that is not named everything is kept."""

    every: Annotated[float, DURATION] = 300.0
    min_age: Annotated[float, DURATION] = 600.0
    min_revisions: Annotated[int, whole(0)] = 10_000
    resources: Annotated[Mapping[str, Retention], _RETENTIONS] = field(default_factory=_default_retentions)


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What ctrlmgr says of itself on stderr."""

    level: Annotated[str, one_of("debug", "info", "warning", "error")] = "info"
    format: Annotated[str, one_of("console", "json")] = "console"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of it. `data_dir` may start with `~`."""

    data_dir: Annotated[str, TEXT] = "~/.local/state/ctrlmgr"
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    leader_election: LeaderElectionSettings = field(default_factory=LeaderElectionSettings)
    endpoints: EndpointsSettings = field(default_factory=EndpointsSettings)
    namespace: NamespaceSettings = field(default_factory=NamespaceSettings)
    pod_garbage_collector: PodGarbageCollectorSettings = field(default_factory=PodGarbageCollectorSettings)
    events: EventSettings = field(default_factory=EventSettings)
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
