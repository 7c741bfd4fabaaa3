"""The settings of the audit log, under kube-apiserver's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import DURATION, SWITCH, TEXT, decimal, one_of, whole

_MODE = one_of("batch", "blocking", "blocking-strict")


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """The audited requests and the audit backends; sizes are in megabytes, ages in days, times in seconds."""

    policy_file: Annotated[
        str,
        TEXT,
        Setting(
            "The audit policy (YAML or JSON, Policy of audit.k8s.io/v1). Without one no request is written down, "
            "and none pays for it.",
            flag="--audit-policy-file",
            metavar="FILE",
        ),
    ] = ""
    keep_for: Annotated[
        float,
        DURATION,
        Setting(
            "For how long audited requests, also those that were refused or only read, can be asked for with "
            "`ctrlmgr sql audit` and `ctrlmgr why`. They are in audit.db in data_dir. "
            '"0s": they cannot.'
        ),
    ] = 7 * 24 * 3600.0
    log_path: Annotated[
        str,
        TEXT,
        Setting(
            "The file that audit events are appended to, a line of JSON each; - is the standard output. Empty: none.",
            flag="--audit-log-path",
            metavar="FILE",
        ),
    ] = ""
    log_maxsize: Annotated[
        int,
        whole(0),
        Setting(
            "The size in megabytes at which that file is put aside and a new one begun. 0: it grows for ever.",
            flag="--audit-log-maxsize",
            metavar="MB",
        ),
    ] = 100
    log_maxbackup: Annotated[
        int,
        whole(0),
        Setting(
            "How many files that were put aside are kept. 0: all.",
            flag="--audit-log-maxbackup",
            metavar="NUMBER",
        ),
    ] = 0
    log_maxage: Annotated[
        int,
        whole(0),
        Setting(
            "For how many days files that were put aside are kept. 0: for ever.",
            flag="--audit-log-maxage",
            metavar="DAYS",
        ),
    ] = 0
    log_compress: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether files that were put aside are packed with gzip.",
            flag="--audit-log-compress",
            metavar="BOOL",
        ),
    ] = False
    log_mode: Annotated[
        str,
        _MODE,
        Setting(
            '"blocking": each event is in the file before the server goes on, or sends the answer. "blocking-strict": '
            "and a request whose first event cannot be written is refused. "
            '"batch": many at a time, on a thread of their own.',
            flag="--audit-log-mode",
            metavar="MODE",
        ),
    ] = "blocking"
    log_batch_buffer_size: Annotated[
        int,
        whole(1),
        Setting(
            "How many events wait at most, with log_mode batch; what does not fit is dropped and counted.",
            flag="--audit-log-batch-buffer-size",
            metavar="NUMBER",
        ),
    ] = 10_000
    log_batch_max_size: Annotated[
        int,
        whole(1),
        Setting("How many are written at a time.", flag="--audit-log-batch-max-size", metavar="NUMBER"),
    ] = 400
    log_batch_max_wait: Annotated[
        float,
        DURATION,
        Setting("How long an event waits at most for others.", flag="--audit-log-batch-max-wait", metavar="DURATION"),
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
            "Whether no more writes than that go out in a second, with log_mode batch.",
            flag="--audit-log-batch-throttle-enable",
            metavar="BOOL",
        ),
    ] = False
    log_batch_throttle_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "How many times a second many are written.",
            flag="--audit-log-batch-throttle-qps",
            metavar="NUMBER",
        ),
    ] = 0.0
    log_batch_throttle_burst: Annotated[
        int,
        whole(0),
        Setting(
            "How many times at once after a quiet time.",
            flag="--audit-log-batch-throttle-burst",
            metavar="NUMBER",
        ),
    ] = 0
    log_truncate_enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether events and lists of them are kept small.",
            flag="--audit-log-truncate-enabled",
            metavar="BOOL",
        ),
    ] = False
    log_truncate_max_event_size: Annotated[
        int,
        whole(1),
        Setting(
            "The size in bytes from which an event goes without the bodies of request and answer; one that is larger "
            "even so is dropped.",
            flag="--audit-log-truncate-max-event-size",
            metavar="BYTES",
        ),
    ] = 102_400
    log_truncate_max_batch_size: Annotated[
        int,
        whole(1),
        Setting(
            "The size in bytes from which a list of events is divided.",
            flag="--audit-log-truncate-max-batch-size",
            metavar="BYTES",
        ),
    ] = 10_485_760
    webhook_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A kubeconfig that says where audit events are sent to (an EventList of audit.k8s.io/v1 at a time). "
            "Empty: nowhere.",
            flag="--audit-webhook-config-file",
            metavar="FILE",
        ),
    ] = ""
    webhook_mode: Annotated[
        str,
        _MODE,
        Setting(
            '"batch": many at a time, and no request waits. "blocking": requests wait until events have been sent. '
            '"blocking-strict": and are refused if their first event could not be.',
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
            "How long to wait before the first retry of a list that could not be sent.",
            flag="--audit-webhook-initial-backoff",
            metavar="DURATION",
        ),
    ] = 10.0
    webhook_batch_buffer_size: Annotated[
        int,
        whole(1),
        Setting(
            "How many events wait to be sent at most; what does not fit is dropped and counted.",
            flag="--audit-webhook-batch-buffer-size",
            metavar="NUMBER",
        ),
    ] = 10_000
    webhook_batch_max_size: Annotated[
        int,
        whole(1),
        Setting("How many are sent at a time.", flag="--audit-webhook-batch-max-size", metavar="NUMBER"),
    ] = 400
    webhook_batch_max_wait: Annotated[
        float,
        DURATION,
        Setting(
            "How long an event waits at most for others.",
            flag="--audit-webhook-batch-max-wait",
            metavar="DURATION",
        ),
    ] = 30.0
    webhook_batch_throttle_enable: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether no more lists than that go out in a second, with webhook_mode batch.",
            flag="--audit-webhook-batch-throttle-enable",
            metavar="BOOL",
        ),
    ] = True
    webhook_batch_throttle_qps: Annotated[
        float,
        decimal(0),
        Setting(
            "How many lists are sent a second.",
            flag="--audit-webhook-batch-throttle-qps",
            metavar="NUMBER",
        ),
    ] = 10.0
    webhook_batch_throttle_burst: Annotated[
        int,
        whole(1),
        Setting(
            "How many lists are sent at once after a quiet time.",
            flag="--audit-webhook-batch-throttle-burst",
            metavar="NUMBER",
        ),
    ] = 15
    webhook_truncate_enabled: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether events and lists of them are kept small.",
            flag="--audit-webhook-truncate-enabled",
            metavar="BOOL",
        ),
    ] = False
    webhook_truncate_max_event_size: Annotated[
        int,
        whole(1),
        Setting(
            "The size in bytes from which an event goes without the bodies of request and answer; one that is larger "
            "even so is dropped.",
            flag="--audit-webhook-truncate-max-event-size",
            metavar="BYTES",
        ),
    ] = 102_400
    webhook_truncate_max_batch_size: Annotated[
        int,
        whole(1),
        Setting(
            "The size in bytes from which a list of events is divided.",
            flag="--audit-webhook-truncate-max-batch-size",
            metavar="BYTES",
        ),
    ] = 10_485_760
