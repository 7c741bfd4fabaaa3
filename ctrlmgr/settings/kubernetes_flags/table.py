"""The table of flags of Kubernetes' programs that are not settings of ctrlmgr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctrlmgr.settings.kubernetes_flags.meanings import FixedFlag, Meaning, NoEffect, RefusedFlag, Sets, SetsSeveral
from ctrlmgr.settings.sections import level_of

_IS_TRUE: Final = ("true", "")
_UNSET: Final = ("",)
_NO_ETCD: Final = NoEffect("there is no etcd; the event log is the store, and --database names it")
_NO_CLOUD: Final = FixedFlag(_UNSET, "ctrlmgr has no cloud controllers; run the cloud's cloud-controller-manager")
_LOGS_AT_ONCE: Final = NoEffect("ctrlmgr writes each log line to standard error immediately")
_ONE_STREAM: Final = FixedFlag(("false",), "all log lines go to standard error, and each has its level")
_ONE_PROCESS: Final = NoEffect("the API server of this process, or of --kubeconfig, reviews the callers")
_NO_CANDIDATES: Final = NoEffect("ctrlmgr has no coordinated leader election; the gate only enables its API fields")
_CLOUD_ONLY: Final = NoEffect("only cloud controllers use it, and ctrlmgr has none")
_EVENT_DRIVEN: Final = NoEffect("controllers react to events of the log and do not poll")
_THIS_VERSION: Final = FixedFlag(("1.36", "kube=1.36"), "ctrlmgr behaves as Kubernetes 1.36")

_LOGS_REQUESTS: Final = 3
"""The klog verbosity from which kube-apiserver logs requests."""


def _verbosity(text: str) -> Mapping[str, str]:
    """Return the settings of the log for a klog verbosity; from 3 on, requests are logged as kube-apiserver does.

    The value can begin with an equals sign, which the form `-v=2` causes.
    """
    digits = text.removeprefix("=")
    if not digits.isdecimal():
        raise ValueError("a whole number")
    requests = {"log.requests": "true"} if int(digits) >= _LOGS_REQUESTS else {}
    return {"log.level": level_of(int(digits)), **requests}


def _log_format(text: str) -> str:
    formats = {"text": "console", "json": "json"}
    if text not in formats:
        raise ValueError("text or json")
    return formats[text]


MEANINGS: Final[Mapping[str, Meaning]] = {
    # both programs
    "--cert-dir": NoEffect("ctrlmgr stores certificates in the directory pki of --data-dir, or in --identity-dir"),
    "--contention-profiling": FixedFlag(
        ("false",), "lock contention is not profiled; /debug/profile samples all threads"
    ),
    "--emulated-version": _THIS_VERSION,
    "--enable-garbage-collector": FixedFlag(
        _IS_TRUE, "to disable it, use --controllers '*,-garbage-collector-controller'"
    ),
    "--log-flush-frequency": _LOGS_AT_ONCE,
    "--log-json-info-buffer-size": _LOGS_AT_ONCE,
    "--log-json-split-stream": _ONE_STREAM,
    "--log-text-info-buffer-size": _LOGS_AT_ONCE,
    "--log-text-split-stream": _ONE_STREAM,
    "--logging-format": Sets("log.format", _log_format),
    "--min-compatibility-version": _THIS_VERSION,
    "--permit-address-sharing": FixedFlag(("true", "false"), "it must be true or false"),
    "--tls-curve-preferences": FixedFlag(_UNSET, "OpenSSL chooses the curves of TLS connections"),
    "--v": SetsSeveral(_verbosity, "Sets `log.level`, and from 3 on `log.requests`."),
    # kube-apiserver
    "--admission-control": RefusedFlag("use --enable-admission-plugins and --disable-admission-plugins"),
    "--coordinated-leadership-lease-duration": _NO_CANDIDATES,
    "--coordinated-leadership-renew-deadline": _NO_CANDIDATES,
    "--coordinated-leadership-retry-period": _NO_CANDIDATES,
    "--debug-socket-path": FixedFlag(_UNSET, "use the paths /debug/profile and /debug/threads of the server"),
    "--delete-collection-workers": NoEffect("the objects of a collection are deleted one after another"),
    "--egress-selector-config-file": FixedFlag(
        _UNSET, "the server connects directly; configure routes in the network of the host"
    ),
    "--emulation-forward-compatible": FixedFlag(("false",), "ctrlmgr behaves as Kubernetes 1.36"),
    "--enable-logs-handler": FixedFlag(("false",), "/logs is not served; read the output of the process"),
    "--etcd-cafile": _NO_ETCD,
    "--etcd-certfile": _NO_ETCD,
    "--etcd-count-metric-poll-period": _NO_ETCD,
    "--etcd-db-metric-poll-interval": _NO_ETCD,
    "--etcd-healthcheck-timeout": _NO_ETCD,
    "--etcd-keyfile": _NO_ETCD,
    "--etcd-prefix": _NO_ETCD,
    "--etcd-readycheck-timeout": _NO_ETCD,
    "--etcd-servers": _NO_ETCD,
    "--etcd-servers-overrides": _NO_ETCD,
    "--lease-reuse-duration-seconds": _NO_ETCD,
    "--max-connection-bytes-per-sec": FixedFlag(("0",), "limit data rates in a proxy in front of the server"),
    "--send-retry-after-while-not-ready-once": FixedFlag(("false",), "requests are served as soon as the port is open"),
    "--runtime-config-emulation-forward-compatible": FixedFlag(("false",), "ctrlmgr behaves as Kubernetes 1.36"),
    "--service-account-signing-endpoint": FixedFlag(_UNSET, "use --service-account-signing-key-file"),
    "--storage-backend": FixedFlag(("", "etcd3"), "the event log is the store, and --database names it"),
    "--storage-initialization-timeout": _NO_ETCD,
    "--storage-media-type": NoEffect("the event log stores objects as JSON"),
    "--watch-cache": FixedFlag(_IS_TRUE, "all reads and watches use the watch cache"),
    "--watch-cache-sizes": NoEffect("one cache serves all resources; the setting watch_cache.capacity is its size"),
    # kube-controller-manager
    "--authentication-kubeconfig": _ONE_PROCESS,
    "--authentication-skip-lookup": _ONE_PROCESS,
    "--authentication-tolerate-lookup-failure": _ONE_PROCESS,
    "--authorization-kubeconfig": _ONE_PROCESS,
    "--cloud-config": _NO_CLOUD,
    "--cloud-provider": FixedFlag(("", "external"), "ctrlmgr has no cloud controllers; use external"),
    "--cluster-name": _CLOUD_ONLY,
    "--concurrent-service-syncs": _CLOUD_ONLY,
    "--configure-cloud-routes": _CLOUD_ONLY,
    "--external-cloud-volume-plugin": _NO_CLOUD,
    "--flex-volume-plugin-dir": NoEffect("ctrlmgr runs no FlexVolume plugins"),
    "--kube-api-content-type": NoEffect("controllers send and receive JSON"),
    "--leader-elect-resource-lock": FixedFlag(("leases",), "leader election always uses a Lease"),
    "--controller-shutdown-timeout": NoEffect("when the server stops, controllers finish their current work"),
    "--min-resync-period": _EVENT_DRIVEN,
    "--namespace-sync-period": _EVENT_DRIVEN,
    "--route-reconciliation-period": _CLOUD_ONLY,
    "--unsupported-kube-api-over-localhost": FixedFlag(
        ("false",), "ctrlmgr calls the API server at the address in --kubeconfig"
    ),
    # flags that Kubernetes has removed
    "--address": NoEffect("Kubernetes removed this flag; use --listen"),
    "--port": FixedFlag(("0",), "plain HTTP is not served; use --listen"),
    "--insecure-port": FixedFlag(("0",), "plain HTTP is not served; use --listen"),
    "--insecure-bind-address": NoEffect("Kubernetes removed this flag; plain HTTP is not served"),
    "--logtostderr": NoEffect("Kubernetes removed this flag; logs go to standard error"),
    "--alsologtostderr": NoEffect("Kubernetes removed this flag; logs go to standard error"),
    "--log-dir": NoEffect("Kubernetes removed this flag; logs go to standard error"),
    "--log-file": NoEffect("Kubernetes removed this flag; logs go to standard error"),
    "--stderrthreshold": NoEffect("Kubernetes removed this flag; logs go to standard error"),
    "--deployment-controller-sync-period": NoEffect("Kubernetes removed this flag; the controller does not poll"),
    "--pod-eviction-timeout": NoEffect(
        "Kubernetes removed this flag; set tolerationSeconds in the tolerations of pods"
    ),
    "--enable-taint-manager": NoEffect(
        "Kubernetes removed this flag; the controller taint-eviction-controller evicts pods"
    ),
    "--experimental-cluster-signing-duration": NoEffect("Kubernetes removed this flag; use --cluster-signing-duration"),
    "--target-ram-mb": NoEffect(
        "Kubernetes removed this flag; the setting watch_cache.capacity is the size of the watch cache"
    ),
}
"""The meaning of each of these flags. Kubernetes removed the flags in the last part of the table before version 1.36.
"""
