"""The settings of the controllers and of leader election."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import (
    DURATION,
    LIST,
    NAMES,
    SWITCH,
    TEXT,
    decimal,
    whole,
)


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """The settings of the controllers: which controllers run, and how many requests they send.

    In the list of controllers, `*` means all controllers, and `-name` excludes one, as in kube-controller-manager's
    `--controllers`. `root_ca_file` is the file with the certificate that is published in every namespace; by default,
    this is the certificate of this server's authority.
    """

    enabled: Annotated[
        tuple[str, ...],
        LIST,
        Setting(
            'The controllers that run: "*" enables all, "name" enables this one, "-name" disables this one.',
            flag="--controllers",
            metavar="LIST",
        ),
    ] = ("*",)
    apps: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The apps whose controllers run in addition to the built-in ones. Each app is given as "
            "`module:attribute`, as a file such as `shop.py`, or by the name under which a package has installed "
            "it. Missing definitions of the apps' kinds are installed. Modules of apps are imported from the "
            "working directory first.",
            flag="--app",
            metavar="MODULE:APP",
        ),
    ] = ()
    start_interval: Annotated[
        float,
        DURATION,
        Setting(
            "The delay between the starts of two controllers; the actual delay is random, up to twice as long. "
            "Zero: all controllers start at once.",
            flag="--controller-start-interval",
            metavar="DURATION",
        ),
    ] = 0.0
    kube_api_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "The maximum number of API requests per second that each controller may send on average. 0: no limit.",
            flag="--kube-api-qps",
            metavar="RATE",
        ),
    ] = 0.0
    kube_api_burst: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of API requests that a controller may send at once after an idle time; used only "
            "if kube_api_qps is set.",
            flag="--kube-api-burst",
            metavar="N",
        ),
    ] = 30
    root_ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) that is published in every namespace, so that pods can verify the API server. "
            "Empty: pki/ca.crt in data_dir; that is correct if the controllers and the API run in one process or "
            "share data_dir.",
            flag="--root-ca-file",
            metavar="FILE",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class LeaderElectionSettings:
    """The settings of leader election; durations are in seconds. The package `leaderelection` explains their meaning.

    If `enabled` is false, the process runs the controllers without an election, even if other processes also run
    controllers.
    """

    enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the processes that share a database elect one process that runs the controllers. false: this "
            "process always runs the controllers; use this for a single process only.",
            flag="--leader-elect",
            metavar="BOOL",
        ),
    ] = True
    lease_duration: Annotated[
        float,
        DURATION,
        Setting(
            "How long the other processes regard a leader as alive after its last observed renewal.",
            flag="--leader-elect-lease-duration",
            metavar="DURATION",
        ),
    ] = 15.0
    renew_deadline: Annotated[
        float,
        DURATION,
        Setting(
            "The time without a renewal after which a leader stops its controllers; it must be less than "
            "lease_duration.",
            flag="--leader-elect-renew-deadline",
            metavar="DURATION",
        ),
    ] = 10.0
    retry_period: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which the leader renews its Lease, and retries failed renewals.",
            flag="--leader-elect-retry-period",
            metavar="DURATION",
        ),
    ] = 2.0
    resource_name: Annotated[
        str,
        TEXT,
        Setting("The name of the Lease that the leader holds.", flag="--leader-elect-resource-name", metavar="NAME"),
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
    migration: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether controllers that move from one controller manager to another run under a second Lease, which "
            "both hold in turn. Only for processes that run controllers against another API server.",
            flag="--enable-leader-migration",
            metavar="BOOL",
        ),
    ] = False
    migration_config: Annotated[
        str,
        TEXT,
        Setting(
            "A file that names the second Lease and its controllers (YAML or JSON, LeaderMigrationConfiguration of "
            "controllermanager.config.k8s.io/v1). Empty: the controllers of clouds, which ctrlmgr does not have.",
            flag="--leader-migration-config",
            metavar="FILE",
        ),
    ] = ""
