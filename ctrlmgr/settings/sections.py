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

from ctrlmgr.settings.admission_settings import AdmissionSettings
from ctrlmgr.settings.audit_settings import AuditSettings
from ctrlmgr.settings.authentication_settings import AuthenticationSettings, OpenIdSettings, ServiceAccountSettings
from ctrlmgr.settings.authorization_settings import AuthorizationSettings
from ctrlmgr.settings.kubelet_settings import KubeletSettings
from ctrlmgr.settings.server_settings import ServerSettings
from ctrlmgr.settings.setting_declaration import Setting, kinds_of
from ctrlmgr.settings.setting_types import (
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
from ctrlmgr.settings.tls_settings import TlsSettings

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
            "The file outside the database that stores the newest revision of the log, to detect a lost or "
            "restored database. Empty: beside a SQLite file, as FILE-anchor; for PostgreSQL HOST-NAME.anchor in "
            "data_dir.",
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
            "A command that receives each new anchor, one line of JSON, on its standard input, to store it out of"
            " reach of the database's writers: for example 'ssh vault tee -a anchors'. It runs without a shell.",
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
            "The maximum number of connections to PostgreSQL for reads per process; three more are for appending,"
            " following and leadership. If none is free, the server refuses a request with 503, and the client "
            "retries it."
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
            "The range of ClusterIPs, or one of IPv4 and one of IPv6; the first is the default family.",
            flag="--service-cluster-ip-range",
            metavar="CIDR[,CIDR]",
        ),
    ] = "10.96.0.0/16"
    node_port_range: Annotated[
        str, PORTS, Setting("The range of node ports.", flag="--service-node-port-range", metavar="A-B")
    ] = "30000-32767"
    kubernetes_service_node_port: Annotated[
        int,
        whole(0),
        Setting(
            "The node port of the `kubernetes` service, for access to the API on every node. 0: none.",
            flag="--kubernetes-service-node-port",
            metavar="PORT",
        ),
    ] = 0
    endpoint_reconciler_type: Annotated[
        str,
        one_of("lease", "master-count", "none"),
        Setting(
            'The endpoints of the `kubernetes` service: "lease" the addresses of all live processes, '
            '"master-count" a fixed number of addresses, "none" no addresses, because another client manages its '
            "Endpoints.",
            flag="--endpoint-reconciler-type",
            metavar="TYPE",
        ),
    ] = "lease"
    apiserver_count: Annotated[int, whole(1), Setting('The number of serving processes; for "master-count" only.')] = 1


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """The controllers that run: `*` is all of them, `-name` excludes one (kube-controller-manager's `--controllers`).

    `root_ca_file` is the certificate that is published in every namespace, by default this server's authority.
    """

    enabled: Annotated[
        tuple[str, ...],
        LIST,
        Setting(
            'The controllers that run: "*" means all, "name" this one, "-name" not this one.',
            flag="--controllers",
            metavar="LIST",
        ),
    ] = ("*",)
    apps: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Apps whose controllers run, too, as `module:attribute`, as a file such as `shop.py`, or by the name "
            "under which a package has installed one. Missing definitions of their kinds are installed. Modules "
            "are imported from the working directory first.",
            flag="--app",
            metavar="MODULE:APP",
        ),
    ] = ()
    start_interval: Annotated[
        float,
        DURATION,
        Setting(
            "The delay between the starts of two controllers, up to twice as long. Zero: all start at once.",
            flag="--controller-start-interval",
            metavar="DURATION",
        ),
    ] = 0.0
    kube_api_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "The maximum number of API requests per second of each controller on average. 0: no limit.",
            flag="--kube-api-qps",
            metavar="RATE",
        ),
    ] = 0.0
    kube_api_burst: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of API requests that a controller may send at once after an idle time; only with "
            "kube_api_qps.",
            flag="--kube-api-burst",
            metavar="N",
        ),
    ] = 30
    root_ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) that is published in every namespace, so that pods can verify the API server. "
            "Empty: ca.crt in data_dir/pki, which is correct if controllers and API run in one process or share "
            "that directory.",
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
            "Whether processes that share a database elect one that runs the controllers. false: this process "
            "always runs them; only for a single process.",
            flag="--leader-elect",
            metavar="BOOL",
        ),
    ] = True
    lease_duration: Annotated[
        float,
        DURATION,
        Setting(
            "How long a leader counts as alive after its last observed renewal.",
            flag="--leader-elect-lease-duration",
            metavar="DURATION",
        ),
    ] = 15.0
    renew_deadline: Annotated[
        float,
        DURATION,
        Setting(
            "The time without a renewal after which a leader stops its controllers; less than lease_duration.",
            flag="--leader-elect-renew-deadline",
            metavar="DURATION",
        ),
    ] = 10.0
    retry_period: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which the leader renews its lease, and retries failed renewals.",
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
        Setting(
            'How long an Event is kept after its last change. "0s": until a client deletes it.',
            flag="--event-ttl",
            metavar="DURATION",
        ),
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

    every: Annotated[float, DURATION, Setting("The interval of compaction.")] = 300.0
    api_interval: Annotated[
        float,
        DURATION,
        Setting(
            "The interval of compactions of the API. A watch, a continue token or an exact list of a revision that is "
            'older is answered 410, while the log keeps its history. "0s" answers for as long as the log has it.',
            flag="--etcd-compaction-interval",
            metavar="DURATION",
        ),
    ] = 300.0
    min_age: Annotated[
        float,
        DURATION,
        Setting("The minimum age of a removed event, counted from the time at which it was superseded."),
    ] = 600.0
    min_revisions: Annotated[
        int, whole(0), Setting("The number of newest revisions that are always kept, regardless of their age.")
    ] = 10_000
    secrets_for: Annotated[
        float,
        DURATION,
        Setting(
            "How long old states of Secrets are kept, including deleted Secrets, regardless of the length of the "
            'log; min_age applies too. "0s" keeps them for ever. A rule for "secrets" among the resources '
            "replaces it."
        ),
    ] = 3600.0
    resources: Annotated[
        Mapping[str, Retention],
        _RETENTIONS,
        Setting(
            "The retention of each resource; all events of other resources are kept. `keep` is how "
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
            'The level of the log on stderr: "debug", "info", "warning" or "error".',
            flag="--log-level",
            metavar="LEVEL",
        ),
    ] = "info"
    format: Annotated[
        str,
        one_of("console", "json"),
        Setting(
            '"console" for people, "json" for programs: one object per line.', flag="--log-format", metavar="FORMAT"
        ),
    ] = "console"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings. `data_dir` may start with `~`."""

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
