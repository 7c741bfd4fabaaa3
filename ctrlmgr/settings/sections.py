"""Every setting with its type and default. `settings.toml` lists every key (a test compares both).

`Settings` is frozen. Each part of ctrlmgr receives its own section, never the whole.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from ctrlmgr.settings.admission import AdmissionSettings
from ctrlmgr.settings.audit import AuditSettings
from ctrlmgr.settings.authentication import AuthenticationSettings, OpenIdSettings, ServiceAccountSettings
from ctrlmgr.settings.authorization import AuthorizationSettings
from ctrlmgr.settings.declaration import Setting, kinds_of
from ctrlmgr.settings.kinds import (
    DURATION,
    LIST,
    NAMES,
    PORTS,
    RANGES,
    SWITCH,
    TEXT,
    Kind,
    decimal,
    one_of,
    whole,
)
from ctrlmgr.settings.server import ServerSettings

T = TypeVar("T")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, kw_only=True)
class Retention:
    """The events that compaction keeps of one resource: each object's newest `keep` and all younger than `keep_for`."""

    keep: Annotated[int, whole(1)] = 1
    keep_for: Annotated[float, DURATION] = 0.0


def _read_retentions(value: Any) -> Mapping[str, Retention]:
    """Return the table of `[compaction.resources]`; in an environment variable it is an inline TOML table."""
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
    """Return the default rules, for heartbeats that processes write all the time."""
    return {
        "masterleases.internal.ctrlmgr.io": Retention(keep=1),
        "leases.coordination.k8s.io": Retention(keep=1, keep_for=3600.0),
    }


_RETENTIONS = Kind(
    'resources and what to keep of each, such as "events" = { keep = 2, keep_for = "1h" }', _read_retentions
)


@dataclass(frozen=True, kw_only=True)
class DatabaseSettings:
    """The event log and its anchor; `Settings.database_url` and `anchor_path` explain the defaults.

    `pool_size` is the number of PostgreSQL connections for reads of a process.
    """

    url: Annotated[
        str,
        TEXT,
        Setting(
            'Where the event log is: "sqlite:///relative.db", "sqlite:////absolute.db", '
            '"postgresql://user:password@host/name", or "memory:" (gone when the process ends). Empty: the '
            "SQLite file ctrlmgr.db in data_dir.",
            flag="--database",
            metavar="URL",
        ),
    ] = ""
    anchor: Annotated[
        str,
        TEXT,
        Setting(
            "The file outside the database that remembers how far the log had come, so that a lost or "
            "restored database is noticed. Empty: beside a SQLite file, as FILE-anchor; for PostgreSQL "
            "HOST-NAME.anchor in data_dir.",
            flag="--anchor",
            metavar="FILE",
        ),
    ] = ""
    anchor_key: Annotated[
        str,
        TEXT,
        Setting(
            "The file with the Ed25519 key that signs the anchor; `verify` also takes the public half. Empty: "
            "beside the anchor, as ANCHOR.key, which `serve` makes.",
            flag="--anchor-key",
            metavar="FILE",
        ),
    ] = ""
    anchor_command: Annotated[
        str,
        TEXT,
        Setting(
            "A command that is given each new anchor, one line of JSON, on its standard input: to keep it where "
            "no writer of the database can reach it, for example 'ssh vault tee -a anchors'. No shell reads it.",
            flag="--anchor-command",
            metavar="COMMAND",
        ),
    ] = ""
    anchor_command_every: Annotated[
        float, DURATION, Setting("The shortest time between two runs of the anchor's command.")
    ] = 60.0
    pool_size: Annotated[
        int,
        whole(2),
        Setting(
            "How many connections to PostgreSQL a process reads with at the most; three more are for "
            "appending, following and leadership. A request that finds none free is told to come back (503)."
        ),
    ] = 8


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """The ranges of ClusterIPs, one per family, and of node ports (both ends included).

    The other settings are for the `kubernetes` service. `kubernetes_service_node_port` 0 means no node port.
    `apiserver_count` is the number of servers, for the reconciler "master-count".
    """

    cluster_ip_range: Annotated[
        str,
        RANGES,
        Setting(
            "Where ClusterIPs come from: one range, or one of IPv4 and one of IPv6, the first being the "
            "default family.",
            flag="--service-cluster-ip-range",
            metavar="CIDR[,CIDR]",
        ),
    ] = "10.96.0.0/16"
    node_port_range: Annotated[
        str, PORTS, Setting("Where node ports come from.", flag="--service-node-port-range", metavar="A-B")
    ] = "30000-32767"
    kubernetes_service_node_port: Annotated[
        int,
        whole(0),
        Setting(
            "The node port of the `kubernetes` service, through which the API can be reached on every node. "
            "0: it has none.",
            flag="--kubernetes-service-node-port",
            metavar="PORT",
        ),
    ] = 0
    endpoint_reconciler_type: Annotated[
        str,
        one_of("lease", "master-count", "none"),
        Setting(
            'Whose addresses the `kubernetes` service leads to: "lease" those of the processes that are '
            'alive, "master-count" a fixed number that each process joins, "none" no addresses, because another '
            "else keeps its Endpoints."
        ),
    ] = "lease"
    apiserver_count: Annotated[int, whole(1), Setting('How many processes serve; for "master-count" only.')] = 1


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """The controllers that run: `*` is all of them, `-name` excludes one (kube-controller-manager's `--controllers`).

    `root_ca_file` is the certificate that is published in every namespace, by default this server's authority.
    """

    enabled: Annotated[
        tuple[str, ...],
        LIST,
        Setting(
            'The controllers that run: "*" means all of them, "name" this one, "-name" not this one.',
            flag="--controllers",
            metavar="LIST",
        ),
    ] = ("*",)
    apps: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Apps whose controllers run, too, as `module:attribute`, as a file such as `shop.py`, or by the name under "
            "which a package has installed one. Their kinds are defined when they are not. Modules are looked for in "
            "the working directory first.",
            flag="--app",
            metavar="MODULE:APP",
        ),
    ] = ()
    start_interval: Annotated[
        float,
        DURATION,
        Setting(
            "How long to wait, up to twice as long, between starting one controller and the next. Zero: all at once.",
            flag="--controller-start-interval",
            metavar="DURATION",
        ),
    ] = 0.0
    kube_api_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "How many requests a second each controller may send to the API on average. 0: any number.",
            flag="--kube-api-qps",
            metavar="RATE",
        ),
    ] = 0.0
    kube_api_burst: Annotated[
        int,
        whole(1),
        Setting(
            "How many requests a controller that has sent none for a while may send at once; for kube_api_qps only.",
            flag="--kube-api-burst",
            metavar="N",
        ),
    ] = 30
    root_ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) that is published in every namespace, for pods to verify the API server "
            "by. Empty: ca.crt in data_dir/pki, which is the right one where controllers and API run in one "
            "process or share that directory.",
            flag="--root-ca-file",
            metavar="FILE",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class LeaderElectionSettings:
    """The leader election; durations are in seconds, see `leaderelection`.

    With `enabled` false, this process runs the controllers regardless of others.
    """

    enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether processes that share a database agree on one that runs the controllers. false: this one "
            "does, whatever others do; for one process alone.",
            flag="--leader-elect",
            metavar="BOOL",
        ),
    ] = True
    lease_duration: Annotated[
        float,
        DURATION,
        Setting(
            "How long a leader counts as alive after its last renewal was observed.",
            flag="--leader-elect-lease-duration",
            metavar="DURATION",
        ),
    ] = 15.0
    renew_deadline: Annotated[
        float,
        DURATION,
        Setting(
            "A leader that could not renew its lease for so long stops its controllers; less than lease_duration.",
            flag="--leader-elect-renew-deadline",
            metavar="DURATION",
        ),
    ] = 10.0
    retry_period: Annotated[
        float,
        DURATION,
        Setting(
            "How often the leader renews its lease, and tries again what has failed.",
            flag="--leader-elect-retry-period",
            metavar="DURATION",
        ),
    ] = 2.0
    resource_name: Annotated[
        str, TEXT, Setting("The Lease that the leader holds.", flag="--leader-elect-resource-name", metavar="NAME")
    ] = "ctrlmgr"
    resource_namespace: Annotated[
        str,
        TEXT,
        Setting(
            "The namespace of the Lease that the leader holds.",
            flag="--leader-elect-resource-namespace",
            metavar="NAMESPACE",
        ),
    ] = "kube-system"


@dataclass(frozen=True, kw_only=True)
class EventSettings:
    """Events (core/v1); `ttl` is the seconds after its last change that an Event is kept, 0: forever."""

    ttl: Annotated[
        float,
        DURATION,
        Setting('How long an Event is kept after it has last changed. "0s": until a client deletes it.'),
    ] = 3600.0


@dataclass(frozen=True, kw_only=True)
class WatchCacheSettings:
    """The size of the history that all readers share, in events."""

    capacity: Annotated[
        int,
        whole(1),
        Setting(
            "How many of the newest events are held in memory for all readers; a reader that falls further behind "
            "reads the log."
        ),
    ] = 10_000


@dataclass(frozen=True, kw_only=True)
class CompactionSettings:
    """When and for which resources old events are removed; a resource that is not named keeps all."""

    every: Annotated[float, DURATION, Setting("How often old events are looked for.")] = 300.0
    min_age: Annotated[
        float, DURATION, Setting("No event that was superseded more recently than this is ever forgotten.")
    ] = 600.0
    min_revisions: Annotated[
        int, whole(0), Setting("At least this many of the newest revisions are kept whole, whatever their age.")
    ] = 10_000
    secrets_for: Annotated[
        float,
        DURATION,
        Setting(
            "For how long what a Secret was before is kept, deleted ones included, however short the log is; min_age "
            'counts too. "0s" keeps it for ever. A rule for "secrets" among the resources takes its place.'
        ),
    ] = 3600.0
    resources: Annotated[
        Mapping[str, Retention],
        _RETENTIONS,
        Setting(
            "The retention of each resource; everything is kept of a resource that is not named. `keep` is how "
            "many of each object's newest events stay (at least 1), `keep_for` the time for which all of them "
            "do. An object's current state always stays. A table of your own takes the place of this one, "
            "which has what processes write every few seconds to say that they serve and that they lead. For "
            'example: "events" = { keep_for = "1d" }'
        ),
    ] = field(default_factory=_default_retentions)


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """ctrlmgr's own log on stderr."""

    level: Annotated[
        str,
        one_of("debug", "info", "warning", "error"),
        Setting(
            'How much to say on stderr: "debug", "info", "warning" or "error".', flag="--log-level", metavar="LEVEL"
        ),
    ] = "info"
    format: Annotated[
        str,
        one_of("console", "json"),
        Setting('"console" for people, "json" for machines: one object a line.', flag="--log-format", metavar="FORMAT"),
    ] = "console"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings. `data_dir` may start with `~`."""

    data_dir: Annotated[
        str,
        TEXT,
        Setting(
            "Directory for what ctrlmgr keeps on disk: the SQLite database and its anchor. `~` is your home directory. "
            "If XDG_STATE_HOME is set, the default is $XDG_STATE_HOME/ctrlmgr.",
            flag="--data-dir",
            metavar="DIR",
        ),
    ] = "~/.local/state/ctrlmgr"
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    authentication: AuthenticationSettings = field(default_factory=AuthenticationSettings)
    oidc: OpenIdSettings = field(default_factory=OpenIdSettings)
    service_accounts: ServiceAccountSettings = field(default_factory=ServiceAccountSettings)
    authorization: AuthorizationSettings = field(default_factory=AuthorizationSettings)
    admission: AdmissionSettings = field(default_factory=AdmissionSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    controllers: ControllerSettings = field(default_factory=ControllerSettings)
    leader_election: LeaderElectionSettings = field(default_factory=LeaderElectionSettings)
    events: EventSettings = field(default_factory=EventSettings)
    watch_cache: WatchCacheSettings = field(default_factory=WatchCacheSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    log: LogSettings = field(default_factory=LogSettings)

    declared: Mapping[type[Any], Any] = field(default_factory=dict, compare=False)
    """The values of classes added by `declaration.declare`; use `of` to read them."""

    def of(self, options: type[T]) -> T:
        """Return the values of a declared class; its defaults if nothing was set."""
        found = self.declared.get(options)
        return options() if found is None else found

    @property
    def database_url(self) -> str:
        """The database's URL, with the default filled in."""
        return self.database.url or f"sqlite:///{self.data_path / 'ctrlmgr.db'}"

    @property
    def anchor_key_path(self) -> Path | None:
        """The file of the key that signs the anchor.

        It is beside the anchor, so processes that share one share both.
        """
        if self.database.anchor_key:
            return Path(self.database.anchor_key).expanduser()
        anchor = self.anchor_path
        return anchor.with_name(f"{anchor.name}.key") if anchor else None

    @property
    def data_path(self) -> Path:
        """The directory for ctrlmgr's files."""
        return Path(self.data_dir).expanduser()

    @property
    def identity_path(self) -> Path | None:
        """The directory of files that processes share; None if there is none."""
        return Path(self.server.identity_dir).expanduser() if self.server.identity_dir else None

    @property
    def anchor_path(self) -> Path | None:
        """The anchor's file: beside a SQLite database, in `data_dir` for others; None for a log in memory."""
        if self.database.anchor:
            return Path(self.database.anchor).expanduser()
        scheme, _, rest = self.database_url.partition("://")
        if scheme == "sqlite":
            return Path(rest.removeprefix("/") + "-anchor")
        place = rest.rpartition("@")[2].partition("?")[0]
        return self.data_path / f"{_UNSAFE.sub('-', place)}.anchor" if place else None
