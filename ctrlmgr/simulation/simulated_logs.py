"""The logs of containers on simulated nodes.

Guarantees: the log lines are deterministic, and agree with the pod's status. Error messages are the same as in the
kubelet (`pkg/kubelet/kubelet_pods.go`, `validateContainerLogStatus`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.simulation.container_runs import ContainerStop, Span
from ctrlmgr.simulation.pod_lifecycle import ContainerLife, live
from ctrlmgr.simulation.shell import Line
from ctrlmgr.simulation.simulated_network import OPEN, Network

_SAME: Final = 0.01
"""The tolerance, in seconds, for comparisons of the starts of runs; container ids contain rounded times."""
_WAITS: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogSelection(NamedTuple):
    """The part of a log that a client requests."""

    tail: int | None = None
    since: float | None = None
    """The time of the pod's life from which lines are requested; None if all lines are requested."""


def container_of(pod: Mapping[str, Any], name: str) -> str:
    """Return the name of the requested container.

    If the container does not exist, raises LookupError with kube-apiserver's message.
    """
    spec, meta = pod["spec"], pod["metadata"]
    kinds = {
        "": _names(spec.get("containers")),
        " or one of the init containers": _names(spec.get("initContainers")),
        " or one of the ephemeral containers": _names(spec.get("ephemeralContainers")),
    }
    if name:
        if not any(name in names for names in kinds.values()):
            raise LookupError(f"container {name} is not valid for pod {meta['name']}")
        return name
    if len(kinds[""]) == 1:
        return kinds[""][0]
    choices = "".join(f"{words}: [{' '.join(names)}]" for words, names in kinds.items() if words and names)
    first = ", choose one of: [" + " ".join(kinds[""]) + "]"
    raise LookupError(f"a container name must be specified for pod {meta['name']}{first}{choices}")


def _names(containers: Iterable[Mapping[str, Any]] | None) -> list[str]:
    return [each["name"] for each in containers or ()]


def run_to_read(
    pod: Mapping[str, Any],
    script_of: Callable[[Mapping[str, Any]], Any],
    now: float,
    end: ContainerStop | None,
    container: str,
    network: Network = OPEN,
    *,
    previous: bool = False,
) -> Span:
    """Return the run of a container whose log is requested.

    If the run does not exist, raises LookupError with a message for the client.
    """
    name = pod["metadata"]["name"]
    found = _life(pod, script_of, now, end, container, network)
    if found is None:
        raise LookupError(f'container "{container}" in pod "{name}" is not available')
    spans = [each for each in found.spans if each.start <= now]
    at = len(spans) - 1
    if previous and (found.running(now) or found.is_done):
        # The run in the container's state is the current run. If the container waits, the current run and the previous
        # run are the last run that has ended.
        at -= 1
    if at >= 0:
        return spans[at]
    if previous:
        raise LookupError(f'previous terminated container "{container}" in pod "{name}" not found')
    reason = _WAITS.get(found.waits_for, found.waits_for)
    raise LookupError(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


def same_run(
    pod: Mapping[str, Any],
    script_of: Callable[[Mapping[str, Any]], Any],
    now: float,
    end: ContainerStop | None,
    container: str,
    network: Network,
    span: Span,
) -> Span | None:
    """Return the current state of a run after a change of its pod; None if the run is no longer known."""
    found = _life(pod, script_of, now, end, container, network)
    return next((each for each in found.spans if abs(each.start - span.start) < _SAME), None) if found else None


def _life(
    pod: Mapping[str, Any],
    script_of: Callable[[Mapping[str, Any]], Any],
    now: float,
    end: ContainerStop | None,
    container: str,
    network: Network,
) -> ContainerLife | None:
    life = live(pod, script_of, now, end, None, network)
    return next((each for each in life.containers if each.name == container), None)


def first_lines(span: Span, until: float, selection: LogSelection) -> list[Line]:
    """Return the lines of a run until a given time, limited to the requested part."""
    lines = span.lines(until)
    if selection.tail is not None:
        lines = lines[max(len(lines) - selection.tail, 0) :]
    return [each for each in lines if selection.since is None or each.at >= selection.since]


def lines_after(span: Span, since: float, until: float) -> list[Line]:
    """Return the lines that a run writes after `since` and until `until`."""
    return [each for each in span.lines(until) if each.at > since]


def next_moment(span: Span, now: float) -> float | None:
    """Return the time at which a run writes its next line or ends; None if neither happens."""
    written = (span.start + each.at for each in span.run.lines)
    return min((each for each in (*written, span.end) if each is not None and each > now), default=None)


def written(lines: Iterable[Line], stamp: Callable[[float], str] | None) -> str:
    """Format lines as the text of a log.

    The function `stamp` formats their times; it is None if no timestamps are requested.
    """
    return "".join(f"{stamp(each.at) + ' ' if stamp else ''}{each.written}" for each in lines)
