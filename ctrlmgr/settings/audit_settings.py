"""The settings of the audit log, under kube-apiserver's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, SWITCH, TEXT, decimal, one_of, whole

_MODE = one_of("batch", "blocking", "blocking-strict")


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """The audited requests and the audit backends; sizes are in megabytes, ages in days, times in seconds."""

    policy_file: Annotated[
        str,
        TEXT,
        Setting(
            "The audit policy (YAML or JSON, Policy of audit.k8s.io/v1). Without a policy, the server audits no "
            "requests.",
            flag="--audit-policy-file",
            metavar="FILE",
        ),
    ] = ""
    keep_for: Annotated[
        float,
        DURATION,
        Setting(
            "How long audited requests, including refused and read-only ones, can be queried with `ctrlmgr sql "
            'audit` and `ctrlmgr why`. They are in audit.db in data_dir. "0s": they are not stored.'
        ),
    ] = 7 * 24 * 3600.0
    log_path: Annotated[
        str,
        TEXT,
        Setting(
            "The file to which audit events are appended, one line of JSON each; - is the standard output. Empty:"
            " none.",
            flag="--audit-log-path",
            metavar="FILE",
        ),
    ] = ""
    log_maxsize: Annotated[
        int,
        whole(0),
        Setting(
            "The size in megabytes at which that file is rotated. 0: it is never rotated.",
            flag="--audit-log-maxsize",
            metavar="MB",
        ),
    ] = 100
    log_maxbackup: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum number of rotated files that are kept. 0: all.",
            flag="--audit-log-maxbackup",
            metavar="NUMBER",
        ),
    ] = 0
    log_maxage: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum age of rotated files in days. 0: no limit.",
            flag="--audit-log-maxage",
            metavar="DAYS",
        ),
    ] = 0
    log_compress: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether rotated files are compressed with gzip.",
            flag="--audit-log-compress",
            metavar="BOOL",
        ),
    ] = False
    log_mode: Annotated[
        str,
        _MODE,
        Setting(
            '"blocking": the server writes each event before it continues with the request or sends the response.'
            ' "blocking-strict": it also refuses a request whose first event cannot be written. "batch": a '
            "separate thread writes many events at once.",
            flag="--audit-log-mode",
            metavar="MODE",
        ),
    ] = "blocking"
    log_batch_buffer_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of waiting events, with log_mode batch; further events are dropped and counted.",
            flag="--audit-log-batch-buffer-size",
            metavar="NUMBER",
        ),
    ] = 10_000
    log_batch_max_size: Annotated[
        int,
        whole(1),
        Setting("The maximum number of events in a batch.", flag="--audit-log-batch-max-size", metavar="NUMBER"),
    ] = 400
    log_batch_max_wait: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum time that an event waits for a full batch.",
            flag="--audit-log-batch-max-wait",
            metavar="DURATION",
        ),
    ] = 1.0
    log_format: Annotated[
        str,
        one_of("json", "legacy"),
        Setting(
            '"json": an Event of audit.k8s.io/v1 a line. "legacy": one line of text each.',
            flag="--audit-log-format",
            metavar="FORMAT",
        ),
    ] = "json"
    log_version: Annotated[
        str,
        one_of("audit.k8s.io/v1"),
        Setting(
            "The version of the events in that file; there is one.",
            flag="--audit-log-version",
            metavar="VERSION",
        ),
    ] = "audit.k8s.io/v1"
    log_batch_throttle_enable: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the number of batches per second is limited, with log_mode batch.",
            flag="--audit-log-batch-throttle-enable",
            metavar="BOOL",
        ),
    ] = False
    log_batch_throttle_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "The maximum number of batches per second on average.",
            flag="--audit-log-batch-throttle-qps",
            metavar="NUMBER",
        ),
    ] = 0.0
    log_batch_throttle_burst: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum number of batches at once after an idle time.",
            flag="--audit-log-batch-throttle-burst",
            metavar="NUMBER",
        ),
    ] = 0
    log_truncate_enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the size of events and batches is limited.",
            flag="--audit-log-truncate-enabled",
            metavar="BOOL",
        ),
    ] = False
    log_truncate_max_event_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of an event in bytes. The bodies of request and response are removed from a larger "
            "event; if it is still too large, it is dropped.",
            flag="--audit-log-truncate-max-event-size",
            metavar="BYTES",
        ),
    ] = 102_400
    log_truncate_max_batch_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of a batch in bytes; a larger batch is split.",
            flag="--audit-log-truncate-max-batch-size",
            metavar="BYTES",
        ),
    ] = 10_485_760
    webhook_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A kubeconfig of the server to which audit events are sent (as EventLists of audit.k8s.io/v1). Empty:"
            " none.",
            flag="--audit-webhook-config-file",
            metavar="FILE",
        ),
    ] = ""
    webhook_mode: Annotated[
        str,
        _MODE,
        Setting(
            '"batch": the server sends many events at once, and no request waits. "blocking": requests wait until'
            ' their events are sent. "blocking-strict": it also refuses a request whose first event cannot be '
            "sent.",
            flag="--audit-webhook-mode",
            metavar="MODE",
        ),
    ] = "batch"
    webhook_version: Annotated[
        str,
        one_of("audit.k8s.io/v1"),
        Setting(
            "The version of the events that are sent; there is one.",
            flag="--audit-webhook-version",
            metavar="VERSION",
        ),
    ] = "audit.k8s.io/v1"
    webhook_initial_backoff: Annotated[
        float,
        DURATION,
        Setting(
            "The delay before the first retry of a batch that could not be sent.",
            flag="--audit-webhook-initial-backoff",
            metavar="DURATION",
        ),
    ] = 10.0
    webhook_batch_buffer_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of events that wait to be sent; further events are dropped and counted.",
            flag="--audit-webhook-batch-buffer-size",
            metavar="NUMBER",
        ),
    ] = 10_000
    webhook_batch_max_size: Annotated[
        int,
        whole(1),
        Setting("The maximum number of events in a batch.", flag="--audit-webhook-batch-max-size", metavar="NUMBER"),
    ] = 400
    webhook_batch_max_wait: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum time that an event waits for a full batch.",
            flag="--audit-webhook-batch-max-wait",
            metavar="DURATION",
        ),
    ] = 30.0
    webhook_batch_throttle_enable: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the number of batches per second is limited, with webhook_mode batch.",
            flag="--audit-webhook-batch-throttle-enable",
            metavar="BOOL",
        ),
    ] = True
    webhook_batch_throttle_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "The maximum number of batches per second on average.",
            flag="--audit-webhook-batch-throttle-qps",
            metavar="NUMBER",
        ),
    ] = 10.0
    webhook_batch_throttle_burst: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of batches at once after an idle time.",
            flag="--audit-webhook-batch-throttle-burst",
            metavar="NUMBER",
        ),
    ] = 15
    webhook_truncate_enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the size of events and batches is limited.",
            flag="--audit-webhook-truncate-enabled",
            metavar="BOOL",
        ),
    ] = False
    webhook_truncate_max_event_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of an event in bytes. The bodies of request and response are removed from a larger "
            "event; if it is still too large, it is dropped.",
            flag="--audit-webhook-truncate-max-event-size",
            metavar="BYTES",
        ),
    ] = 102_400
    webhook_truncate_max_batch_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of a batch in bytes; a larger batch is split.",
            flag="--audit-webhook-truncate-max-batch-size",
            metavar="BYTES",
        ),
    ] = 10_485_760
