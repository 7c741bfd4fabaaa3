"""The settings of the audit log, with the same names as the flags of kube-apiserver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, SWITCH, TEXT, decimal, one_of, whole

_MODE = one_of("batch", "blocking", "blocking-strict")


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """The settings of audit: which requests are audited, and where the server writes or sends audit events.

    Sizes of files are in megabytes, ages in days and durations in seconds.
    """

    policy_file: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the audit policy (YAML or JSON, Policy of audit.k8s.io/v1). Without a policy, the server "
            "audits no requests.",
            flag="--audit-policy-file",
            metavar="FILE",
        ),
    ] = ""
    keep_for: Annotated[
        float,
        DURATION,
        Setting(
            "How long the server stores audited requests, including refused and read-only ones, for `ctrlmgr sql "
            'audit` and `ctrlmgr why`. The requests are stored in audit.db in data_dir. "0s": no requests are '
            "stored."
        ),
    ] = 7 * 24 * 3600.0
    log_path: Annotated[
        str,
        TEXT,
        Setting(
            "The file to which the server appends audit events, one event per line; - is the standard output. "
            "Empty: no file.",
            flag="--audit-log-path",
            metavar="FILE",
        ),
    ] = ""
    log_maxsize: Annotated[
        int,
        whole(0),
        Setting(
            "The size in megabytes at which the server rotates the audit log file. 0: the file is never rotated.",
            flag="--audit-log-maxsize",
            metavar="MB",
        ),
    ] = 100
    log_maxbackup: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum number of rotated audit log files that are kept. 0: all files are kept.",
            flag="--audit-log-maxbackup",
            metavar="NUMBER",
        ),
    ] = 0
    log_maxage: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum age of rotated audit log files in days; older files are deleted. 0: no limit.",
            flag="--audit-log-maxage",
            metavar="DAYS",
        ),
    ] = 0
    log_compress: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether rotated audit log files are compressed with gzip.",
            flag="--audit-log-compress",
            metavar="BOOL",
        ),
    ] = False
    log_mode: Annotated[
        str,
        _MODE,
        Setting(
            'How the server writes audit events to the audit log file: "blocking", "blocking-strict" or "batch". '
            'With "blocking", the server writes each event before it continues with the request or sends the '
            'response. "blocking-strict" also refuses a request whose first event cannot be written. With "batch", '
            "a separate thread writes many events at once.",
            flag="--audit-log-mode",
            metavar="MODE",
        ),
    ] = "blocking"
    log_batch_buffer_size: Annotated[
        int,
        whole(1),
        Setting(
            'The maximum number of audit events that wait to be written to the file, if log_mode is "batch"; '
            "further events are dropped and counted.",
            flag="--audit-log-batch-buffer-size",
            metavar="NUMBER",
        ),
    ] = 10_000
    log_batch_max_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of audit events that are written to the file as one batch.",
            flag="--audit-log-batch-max-size",
            metavar="NUMBER",
        ),
    ] = 400
    log_batch_max_wait: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum time that an audit event waits until its batch is written to the file.",
            flag="--audit-log-batch-max-wait",
            metavar="DURATION",
        ),
    ] = 1.0
    log_format: Annotated[
        str,
        one_of("json", "legacy"),
        Setting(
            'The format of the audit log file: "json" is one Event of audit.k8s.io/v1 per line, "legacy" is '
            "one line of text per event.",
            flag="--audit-log-format",
            metavar="FORMAT",
        ),
    ] = "json"
    log_version: Annotated[
        str,
        one_of("audit.k8s.io/v1"),
        Setting(
            "The API version of the events in the audit log file; only audit.k8s.io/v1 is supported.",
            flag="--audit-log-version",
            metavar="VERSION",
        ),
    ] = "audit.k8s.io/v1"
    log_batch_throttle_enable: Annotated[
        bool,
        SWITCH,
        Setting(
            'Whether the number of batches per second for the audit log file is limited, if log_mode is "batch".',
            flag="--audit-log-batch-throttle-enable",
            metavar="BOOL",
        ),
    ] = False
    log_batch_throttle_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "The maximum number of batches per second that are written to the audit log file, on average.",
            flag="--audit-log-batch-throttle-qps",
            metavar="NUMBER",
        ),
    ] = 0.0
    log_batch_throttle_burst: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum number of batches that are written to the audit log file at once after an idle time.",
            flag="--audit-log-batch-throttle-burst",
            metavar="NUMBER",
        ),
    ] = 0
    log_truncate_enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the sizes of audit events and batches for the audit log file are limited.",
            flag="--audit-log-truncate-enabled",
            metavar="BOOL",
        ),
    ] = False
    log_truncate_max_event_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of an event in the audit log file, in bytes. The server removes the bodies of "
            "request and response from a larger event. If the event is too large even without bodies, it is dropped.",
            flag="--audit-log-truncate-max-event-size",
            metavar="BYTES",
        ),
    ] = 102_400
    log_truncate_max_batch_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of a batch for the audit log file, in bytes; a larger batch is split.",
            flag="--audit-log-truncate-max-batch-size",
            metavar="BYTES",
        ),
    ] = 10_485_760
    webhook_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A kubeconfig of the server to which audit events are sent (as EventLists of audit.k8s.io/v1). Empty: "
            "no events are sent.",
            flag="--audit-webhook-config-file",
            metavar="FILE",
        ),
    ] = ""
    webhook_mode: Annotated[
        str,
        _MODE,
        Setting(
            'How audit events are sent to the audit webhook: "batch", "blocking" or "blocking-strict". With '
            '"batch", the server sends many events at once, and no request waits. With "blocking", each request '
            'waits until its events are sent. "blocking-strict" also refuses a request whose first event cannot be '
            "sent.",
            flag="--audit-webhook-mode",
            metavar="MODE",
        ),
    ] = "batch"
    webhook_version: Annotated[
        str,
        one_of("audit.k8s.io/v1"),
        Setting(
            "The API version of the events that are sent to the audit webhook; only audit.k8s.io/v1 is supported.",
            flag="--audit-webhook-version",
            metavar="VERSION",
        ),
    ] = "audit.k8s.io/v1"
    webhook_initial_backoff: Annotated[
        float,
        DURATION,
        Setting(
            "The delay before the first retry of a batch that could not be sent to the audit webhook.",
            flag="--audit-webhook-initial-backoff",
            metavar="DURATION",
        ),
    ] = 10.0
    webhook_batch_buffer_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of audit events that wait to be sent to the audit webhook; further events are "
            "dropped and counted.",
            flag="--audit-webhook-batch-buffer-size",
            metavar="NUMBER",
        ),
    ] = 10_000
    webhook_batch_max_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of audit events that are sent to the audit webhook as one batch.",
            flag="--audit-webhook-batch-max-size",
            metavar="NUMBER",
        ),
    ] = 400
    webhook_batch_max_wait: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum time that an audit event waits until its batch is sent to the audit webhook.",
            flag="--audit-webhook-batch-max-wait",
            metavar="DURATION",
        ),
    ] = 30.0
    webhook_batch_throttle_enable: Annotated[
        bool,
        SWITCH,
        Setting(
            'Whether the number of batches per second for the audit webhook is limited, if webhook_mode is "batch".',
            flag="--audit-webhook-batch-throttle-enable",
            metavar="BOOL",
        ),
    ] = True
    webhook_batch_throttle_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "The maximum number of batches per second that are sent to the audit webhook, on average.",
            flag="--audit-webhook-batch-throttle-qps",
            metavar="NUMBER",
        ),
    ] = 10.0
    webhook_batch_throttle_burst: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of batches that are sent to the audit webhook at once after an idle time.",
            flag="--audit-webhook-batch-throttle-burst",
            metavar="NUMBER",
        ),
    ] = 15
    webhook_truncate_enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the sizes of audit events and batches for the audit webhook are limited.",
            flag="--audit-webhook-truncate-enabled",
            metavar="BOOL",
        ),
    ] = False
    webhook_truncate_max_event_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of an event for the audit webhook, in bytes. The server removes the bodies of "
            "request and response from a larger event. If the event is too large even without bodies, it is dropped.",
            flag="--audit-webhook-truncate-max-event-size",
            metavar="BYTES",
        ),
    ] = 102_400
    webhook_truncate_max_batch_size: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum size of a batch for the audit webhook, in bytes; a larger batch is split.",
            flag="--audit-webhook-truncate-max-batch-size",
            metavar="BYTES",
        ),
    ] = 10_485_760
