"""Validates the probes and lifecycle hooks of containers.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `validateHandler` and its callers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem, nonnegative_fields

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_STOP_SIGNALS = {
    "windows": frozenset(("SIGKILL", "SIGTERM")),
    "linux": frozenset(
        (
            *("SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT"),
            *("SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV"),
            *("SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG"),
            *("SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGRTMIN", "SIGRTMAX"),
            *(f"SIGRTMIN+{each}" for each in range(1, 16)),
            *(f"SIGRTMAX-{each}" for each in range(1, 15)),
        )
    ),
}
"""The signals that can stop a container, for each operating system (`spec.os.name`)."""
_SCHEMES = ("HTTP", "HTTPS")


def validate_probes(
    container: Mapping[str, Any], grace_period: int | None, system: str | None, path: Path
) -> list[FieldError]:
    """Validate the lifecycle hooks of a container, and then its probes.

    The argument `grace_period` is the pod's grace period in seconds. The argument `system` is the pod's operating
    system; it is None if the pod does not specify one.
    """
    errors: list[FieldError] = []
    if lifecycle := container.get("lifecycle"):
        for hook in ("postStart", "preStop"):
            if (handler := lifecycle.get(hook)) is not None:
                errors += _validate_handler(handler, grace_period, path.child("lifecycle", hook))
        if (signal := lifecycle.get("stopSignal")) is not None:
            errors += _validate_stop_signal(signal, system, path.child("lifecycle", "stopSignal"))
    for name in PROBES:
        if (probe := container.get(name)) is not None:
            errors += _validate_probe(name, probe, grace_period, path.child(name))
    return errors


def _validate_stop_signal(signal: str, system: str | None, path: Path) -> list[FieldError]:
    """Validate the signal that stops a container (KEP-4960)."""
    if system is None:
        return [forbidden(path, "may not be set for containers with empty `spec.os.name`")]
    known = _STOP_SIGNALS.get(system)
    return [] if known is None or signal in known else [not_supported(path, signal, sorted(known))]


def _validate_probe(name: str, probe: Mapping[str, Any], grace_period: int | None, path: Path) -> list[FieldError]:
    errors = _validate_handler(probe, grace_period, path)
    errors += nonnegative_fields(probe, _NUMBERS, path)
    seconds = probe.get("terminationGracePeriodSeconds")
    below = path.child("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(invalid(below, seconds, "must be greater than 0"))
    if name == "readinessProbe":
        if seconds is not None:
            errors.append(invalid(below, seconds, "must not be set for readinessProbes"))
    elif (successes := probe.get("successThreshold") or 0) != 1:
        errors.append(invalid(path.child("successThreshold"), successes, "must be 1"))
    return errors


def _validate_handler(handler: Mapping[str, Any], grace_period: int | None, path: Path) -> list[FieldError]:
    given = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    first = given[0]
    action, below = handler[first], path.child(first)
    if first == "exec":
        errors = [] if action.get("command") else [required(below.child("command"))]
    elif first == "httpGet":
        errors = _validate_http(action, below)
    elif first == "sleep":
        errors = _validate_sleep(action, grace_period, below)
    else:
        errors = validate_port(action.get("port") or 0, below.child("port"))
    return errors + [forbidden(path.child(kind), "may not specify more than 1 handler type") for kind in given[1:]]


def _validate_http(action: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors = [] if action.get("path") else [required(path.child("path"))]
    errors += validate_port(action.get("port") or 0, path.child("port"))
    if (scheme := action.get("scheme") or "") not in _SCHEMES:
        errors.append(not_supported(path.child("scheme"), scheme, _SCHEMES))
    for header in action.get("httpHeaders") or ():
        errors += each_problem(name_formats.http_header_name, header.get("name") or "", path.child("httpHeaders"))
    return errors


def _validate_sleep(action: Mapping[str, Any], grace_period: int | None, path: Path) -> list[FieldError]:
    seconds = action.get("seconds") or 0
    if grace_period is None or 0 <= seconds <= grace_period:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
    return [invalid(path, seconds, detail)]


def validate_port(port: int | str, path: Path) -> list[FieldError]:
    """Validate the port of a probe or hook, which is a number or a name."""
    if isinstance(port, str):
        return each_problem(name_formats.port_name, port, path)
    return [invalid(path, port, problem) for problem in name_formats.port_number(port)]
