"""Declares every setting with its type and default. `settings.toml` lists every key; a test checks that it is complete.

The attributes of a `Settings` object cannot be changed. Each part of ctrlmgr receives only its own section of the
settings.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from ctrlmgr.settings.admission_settings import AdmissionSettings
from ctrlmgr.settings.audit_settings import AuditSettings
from ctrlmgr.settings.authentication_settings import AuthenticationSettings, OpenIdSettings, ServiceAccountSettings
from ctrlmgr.settings.authorization_settings import AuthorizationSettings
from ctrlmgr.settings.cluster_settings import ClusterSettings
from ctrlmgr.settings.controller_settings import ControllerSettings, LeaderElectionSettings
from ctrlmgr.settings.kubelet_settings import KubeletSettings
from ctrlmgr.settings.metrics_settings import MetricsSettings
from ctrlmgr.settings.server_settings import ServerSettings
from ctrlmgr.settings.setting_declaration import Setting, kinds_of
from ctrlmgr.settings.setting_types import (
    DURATION,
    LIST,
    PORTS,
    RANGES,
    SWITCH,
    TEXT,
    Kind,
    one_of,
    whole,
)
from ctrlmgr.settings.tls_settings import TlsSettings

T = TypeVar("T")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MODULE = re.compile(r"[^=,\s]+=[0-9]{1,9}")
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, kw_only=True)
class Retention:
    """The retention rule of one resource, for compaction.

    Compaction keeps each object's newest `keep` events, and all events that are younger than `keep_for`.
    """

    keep: Annotated[int, whole(1)] = 1
    keep_for: Annotated[float, DURATION] = 0.0


def _read_retentions(value: Any) -> Mapping[str, Retention]:
    """Return the table of `[compaction.resources]`.

    An environment variable contains this table as an inline TOML table.
    """
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
    """Return the default rules, which remove old events of objects that programs renew every few seconds."""
    return {
        "masterleases.internal.ctrlmgr.io": Retention(keep=1),
        "leases.coordination.k8s.io": Retention(keep=1, keep_for=3600.0),
    }


_RETENTIONS = Kind(
    'resources and what to keep of each, such as "events" = { keep = 2, keep_for = "1h" }', _read_retentions
)


@dataclass(frozen=True, kw_only=True)
class DatabaseSettings:
    """The settings of the event log and its anchor; `Settings.database_url` and `anchor_path` describe the defaults.

    `pool_size` is the number of PostgreSQL connections with which one process reads.
    """

    url: Annotated[
        str,
        TEXT,
        Setting(
            'The URL of the event log: "sqlite:///relative.db", "sqlite:////absolute.db", '
            '"postgresql://user:password@host/name", or "memory:" (lost when the process ends). Empty: the SQLite'
            " file ctrlmgr.db in data_dir.",
            flag="--database",
            metavar="URL",
        ),
    ] = ""
    anchor: Annotated[
        str,
        TEXT,
        Setting(
            "The anchor: a file outside the database that stores the log's newest revision, so that `serve` "
            "detects a lost or restored database. Empty: FILE-anchor beside a SQLite file; HOST-NAME.anchor in "
            "data_dir for PostgreSQL.",
            flag="--anchor",
            metavar="FILE",
        ),
    ] = ""
    anchor_key: Annotated[
        str,
        TEXT,
        Setting(
            "The file with the Ed25519 key that signs the anchor. `serve` creates the file; `verify` also accepts "
            "a file with the public half of the key. Empty: ANCHOR.key beside the anchor.",
            flag="--anchor-key",
            metavar="FILE",
        ),
    ] = ""
    anchor_command: Annotated[
        str,
        TEXT,
        Setting(
            "A command that receives each new anchor on its standard input, as one line of JSON. The command "
            "should store anchors where writers of the database cannot change them: for example 'ssh vault tee -a "
            "anchors'. The command runs without a shell.",
            flag="--anchor-command",
            metavar="COMMAND",
        ),
    ] = ""
    anchor_command_every: Annotated[
        float, DURATION, Setting("The shortest time between two runs of database.anchor_command.")
    ] = 60.0
    encryption_provider_config: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the keys that encrypt objects in the log (YAML or JSON, EncryptionConfiguration of "
            "apiserver.config.k8s.io/v1). Empty: objects are stored unencrypted.",
            flag="--encryption-provider-config",
            metavar="FILE",
        ),
    ] = ""
    encryption_provider_config_automatic_reload: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether `serve` uses a changed encryption_provider_config within a minute, without a restart.",
            flag="--encryption-provider-config-automatic-reload",
            metavar="BOOL",
        ),
    ] = False
    pool_size: Annotated[
        int,
        whole(2),
        Setting(
            "The maximum number of PostgreSQL connections with which a process reads the log. Three more "
            "connections are for appending, following and leadership. If no connection is free, the server refuses "
            "a request with 503, and the client retries it."
        ),
    ] = 8


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """The settings of the Service network: the ranges of ClusterIPs and node ports, and the `kubernetes` service.

    The range of node ports includes its first and its last port. If `kubernetes_service_node_port` is 0, the
    `kubernetes` service has no node port. `apiserver_count` is the number of servers, for the reconciler
    "master-count".
    """

    cluster_ip_range: Annotated[
        str,
        RANGES,
        Setting(
            "The range of ClusterIPs, or two ranges: one of IPv4 and one of IPv6. The family of the first range is "
            "the default family.",
            flag="--service-cluster-ip-range",
            metavar="CIDR[,CIDR]",
        ),
    ] = "10.96.0.0/16"
    node_port_range: Annotated[
        str, PORTS, Setting("The range of node ports for Services.", flag="--service-node-port-range", metavar="A-B")
    ] = "30000-32767"
    kubernetes_service_node_port: Annotated[
        int,
        whole(0),
        Setting(
            "The node port of the `kubernetes` service, which makes the API reachable on every node. 0: no node port.",
            flag="--kubernetes-service-node-port",
            metavar="PORT",
        ),
    ] = 0
    endpoint_reconciler_type: Annotated[
        str,
        one_of("lease", "master-count", "none"),
        Setting(
            'The addresses of the `kubernetes` service: "lease" for all live processes, "master-count" for a fixed '
            'number of addresses, "none" if another client manages its Endpoints.',
            flag="--endpoint-reconciler-type",
            metavar="TYPE",
        ),
    ] = "lease"
    apiserver_count: Annotated[
        int,
        whole(1),
        Setting(
            'The number of serving processes; used only by the endpoint reconciler "master-count".',
            flag="--apiserver-count",
            metavar="COUNT",
        ),
    ] = 1


@dataclass(frozen=True, kw_only=True)
class EventSettings:
    """The settings of Events (core/v1).

    `ttl` is the number of seconds for which an Event is kept after its last change; if `ttl` is 0, Events are kept
    forever.
    """

    ttl: Annotated[
        float,
        DURATION,
        Setting(
            'How long an Event (core/v1) is kept after its last change. "0s": until a client deletes it.',
            flag="--event-ttl",
            metavar="DURATION",
        ),
    ] = 3600.0


@dataclass(frozen=True, kw_only=True)
class WatchCacheSettings:
    """The settings of the event window.

    `capacity` is the number of newest events that the window keeps for all readers.
    """

    capacity: Annotated[
        int,
        whole(1),
        Setting(
            "How many of the newest events are kept in memory for all readers; a reader that needs older events "
            "reads the log."
        ),
    ] = 10_000


@dataclass(frozen=True, kw_only=True)
class CompactionSettings:
    """The settings of compaction: when old events are removed, and the resources whose old events are removed.

    All events of a resource that has no rule are kept.
    """

    every: Annotated[float, DURATION, Setting("The interval at which old events are removed from the log.")] = 300.0
    api_interval: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which the API is compacted, as etcd is by kube-apiserver. After each compaction, the "
            "server answers watches, continue tokens and exact lists of older revisions with 410, while the log "
            'keeps its history. "0s": the server serves every revision that the log still has.',
            flag="--etcd-compaction-interval",
            metavar="DURATION",
        ),
    ] = 300.0
    min_age: Annotated[
        float,
        DURATION,
        Setting(
            "The minimum age of an event that compaction removes, counted from the time at which a newer state "
            "of the object replaced it."
        ),
    ] = 600.0
    min_revisions: Annotated[
        int, whole(0), Setting("How many of the newest revisions are always kept, regardless of their age.")
    ] = 10_000
    secrets_for: Annotated[
        float,
        DURATION,
        Setting(
            "How long superseded states of Secrets and deleted Secrets are kept, regardless of the length of the "
            'log; min_age applies, too. "0s": they are kept forever. A rule for "secrets" in compaction.resources '
            "replaces this setting."
        ),
    ] = 3600.0
    resources: Annotated[
        Mapping[str, Retention],
        _RETENTIONS,
        Setting(
            "The retention rule of each resource; all events of resources without a rule are kept. `keep` is how "
            "many of each object's newest events are kept (at least 1), and `keep_for` is the time for which all "
            "events are kept. The current state of an object is always kept. A table of your own replaces the "
            "default table. The default table has rules for the objects that processes renew every few seconds. "
            'For example: "events" = { keep_for = "1d" }'
        ),
    ] = field(default_factory=_default_retentions)


def _read_modules(value: Any) -> tuple[str, ...]:
    found = tuple(each for each in LIST.read(value) if each)
    if not all(_MODULE.fullmatch(each) for each in found):
        raise ValueError(value)
    return found


_MODULES = Kind("each of them PATTERN=N, such as controller=4 or ctrlmgr.server.*=4", _read_modules)


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """The settings of ctrlmgr's own log on stderr."""

    level: Annotated[
        str,
        one_of("debug", "info", "warning", "error"),
        Setting(
            'The least severe log lines that are written to stderr: "debug", "info", "warning" or "error".',
            flag="--log-level",
            metavar="LEVEL",
        ),
    ] = "info"
    format: Annotated[
        str,
        one_of("console", "json"),
        Setting(
            'The format of log lines: "console" for people, or "json" for programs, with one object per line.',
            flag="--log-format",
            metavar="FORMAT",
        ),
    ] = "console"
    requests: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether one line is written for each request, with its verb, URI, duration, client, audit id, status, "
            "priority level and the duration of each stage; --v=3 has the same effect.",
            flag="--log-requests",
            metavar="BOOL",
        ),
    ] = False
    modules: Annotated[
        tuple[str, ...],
        _MODULES,
        Setting(
            "The verbosity of single modules, as PATTERN=N: from 4 on, all lines of the module are written; otherwise, "
            "those of the level info. The first pattern counts that matches the module's dotted name or its last part.",
            flag="--vmodule",
            metavar="PATTERN=N,...",
        ),
    ] = ()

    @property
    def module_levels(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of a pattern and a log level in the setting `modules`."""
        pairs = (each.rpartition("=") for each in self.modules)
        return tuple((pattern, level_of(int(verbosity))) for pattern, _, verbosity in pairs)


def level_of(verbosity: int) -> str:
    """Return the log level for a klog verbosity.

    A klog verbosity of at least 4 becomes the level "debug", because kube-apiserver logs details of requests from this
    verbosity on.
    """
    return "debug" if verbosity >= 4 else "info"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, in sections; `data_dir` may start with `~`."""

    data_dir: Annotated[
        str,
        TEXT,
        Setting(
            "The directory of ctrlmgr's files, such as the SQLite database and its anchor. `~` is your home "
            "directory. If XDG_STATE_HOME is set, the default is $XDG_STATE_HOME/ctrlmgr.",
            flag="--data-dir",
            metavar="DIR",
        ),
    ] = "~/.local/state/ctrlmgr"
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    authentication: AuthenticationSettings = field(default_factory=AuthenticationSettings)
    oidc: OpenIdSettings = field(default_factory=OpenIdSettings)
    service_accounts: ServiceAccountSettings = field(default_factory=ServiceAccountSettings)
    authorization: AuthorizationSettings = field(default_factory=AuthorizationSettings)
    admission: AdmissionSettings = field(default_factory=AdmissionSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    kubelet: KubeletSettings = field(default_factory=KubeletSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    leader_election: LeaderElectionSettings = field(default_factory=LeaderElectionSettings)
    events: EventSettings = field(default_factory=EventSettings)
    watch_cache: WatchCacheSettings = field(default_factory=WatchCacheSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    clusters: ClusterSettings = field(default_factory=ClusterSettings)
    log: LogSettings = field(default_factory=LogSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)

    declared: Mapping[type[Any], Any] = field(default_factory=dict, compare=False)
    """The values of the settings classes that `declaration.declare` has added; `of` reads these values."""

    def of(self, options: type[T]) -> T:
        """Return the values of a declared settings class, or the defaults of the class if no value was set."""
        found = self.declared.get(options)
        return options() if found is None else found

    @property
    def database_url(self) -> str:
        """Return the URL of the database; if the settings contain none, return the URL of the default SQLite file."""
        return self.database.url or f"sqlite:///{self.data_path / 'ctrlmgr.db'}"

    @property
    def anchor_key_path(self) -> Path | None:
        """The path of the file with the key that signs the anchor.

        The key file is beside the anchor, so processes that share an anchor also share its key.
        """
        if self.database.anchor_key:
            return Path(self.database.anchor_key).expanduser()
        anchor = self.anchor_path
        return anchor.with_name(f"{anchor.name}.key") if anchor else None

    @property
    def data_path(self) -> Path:
        """The directory for ctrlmgr's files, with `~` expanded."""
        return Path(self.data_dir).expanduser()

    @property
    def identity_path(self) -> Path | None:
        """The directory of the files that all processes of a control plane share; None if no directory is set."""
        return Path(self.server.identity_dir).expanduser() if self.server.identity_dir else None

    @property
    def anchor_path(self) -> Path | None:
        """The path of the anchor: a file beside the SQLite database, or a file in `data_dir` for PostgreSQL.

        The path is None if the log is in memory.
        """
        if self.database.anchor:
            return Path(self.database.anchor).expanduser()
        scheme, _, rest = self.database_url.partition("://")
        if scheme == "sqlite":
            return Path(rest.removeprefix("/") + "-anchor")
        place = rest.rpartition("@")[2].partition("?")[0]
        return self.data_path / f"{_UNSAFE.sub('-', place)}.anchor" if place else None
