"""Serves logs of pods on simulated nodes, and runs commands in the containers of these pods.

Guarantees: only pods on nodes with the simulation's label have simulated logs. The log and the status of a pod are
computed from the same rules. If `follow` is set, the log ends when the container run ends that was current at the start
of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.clock import Clock, format_time
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules
from ctrlmgr.controllers.simulated_nodes.cluster_services import Services
from ctrlmgr.controllers.simulated_nodes.controller import is_marked
from ctrlmgr.controllers.simulated_nodes.resource_metrics import stats_summary
from ctrlmgr.controllers.simulated_nodes.simulated_exec import Executions
from ctrlmgr.controllers.simulated_nodes.simulated_time import PodTime, asked_of, ips_of, taken_at
from ctrlmgr.engine.pod_log_options import LogOptions
from ctrlmgr.errors import BadRequest
from ctrlmgr.simulation.container_runs import Span
from ctrlmgr.simulation.shell import Line
from ctrlmgr.simulation.simulated_logs import (
    LogSelection,
    container_of,
    first_lines,
    lines_after,
    next_moment,
    run_to_read,
    same_run,
    written,
)

_SECOND = 1_000_000


class LogChunk(NamedTuple):
    """A part of a container's log."""

    data: bytes
    wait: float | None
    """The number of seconds until more output or the end of the log, if the pod does not change. The value is infinite
    if no output will follow, and None at the end of the log.
    """


class ContainerLogReader:
    """Reads the log of one run of a container piece by piece."""

    def __init__(self, pod: Object, node: Object, options: LogOptions, runtime: SimulatedRuntime, clock: Clock) -> None:
        """Start reading the log; raises `BadRequest` if the container does not exist or has not run."""
        self._options, self._rules, self._speed, self._clock = options, runtime.rules, runtime.speed, clock
        self._known = pod, node
        self._time = PodTime.of(pod.to_dict(), clock.now(), runtime.speed)
        self._network = runtime.services.seen_by(pod.key, self._time, ips_of(pod.to_dict()), is_told=False)
        self._left = options.limit_bytes
        self._told: float | None = None
        try:
            self._container = container_of(pod.to_dict(), options.container)
            self._span = self._first()
        except LookupError as error:
            raise BadRequest(str(error.args[0])) from error

    def more(self, pod: Object | None, node: Object | None) -> LogChunk:
        """Return the next part of the log; `pod` is the current pod, or None if it was deleted."""
        now = self._clock.now()
        is_over = pod is None or node is None or pod.uid != self._known[0].uid or not self._keep_up(pod, node, now)
        seconds = self._time.seconds(now)
        data = written(self._lines(seconds), self._stamp if self._options.timestamps else None).encode()
        self._told = seconds
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        has_ended = self._span.end is not None and self._span.end <= seconds
        if is_over or has_ended or self._left == 0 or not self._options.follow:
            return LogChunk(data, None)
        moment = next_moment(self._span, seconds)
        return LogChunk(data, inf if moment is None else (moment - seconds) / self._speed)

    def _first(self) -> Span:
        pod, node = self._known
        fields = pod.to_dict()
        return run_to_read(
            fields,
            asked_of(fields, self._rules, node.annotations),
            # A node may still accept the pod later in this second. Therefore the log does not contain output of the
            # current second yet.
            self._time.seconds(self._clock.now()) if taken_at(fields) else 0.0,
            self._time.end(fields),
            self._container,
            self._network,
            previous=self._options.previous,
        )

    def _keep_up(self, pod: Object, node: Object, now: int) -> bool:
        """Update the container run if the pod or its node has changed; return whether the run still exists."""
        if (pod.revision, node.annotations) == (self._known[0].revision, self._known[1].annotations):
            return True
        self._known = pod, node
        fields = pod.to_dict()
        asked, end = asked_of(fields, self._rules, node.annotations), self._time.end(fields)
        found = same_run(fields, asked, self._time.seconds(now), end, self._container, self._network, self._span)
        if found is None:
            return False
        self._span = found
        return True

    def _lines(self, seconds: float) -> Sequence[Line]:
        if self._told is not None:
            return lines_after(self._span, self._told, seconds)
        since = self._options.since_time
        if self._options.since_seconds is not None:
            since = self._clock.now() - self._options.since_seconds * _SECOND
        desired = LogSelection(self._options.tail_lines, None if since is None else self._time.seconds(since))
        return first_lines(self._span, seconds, desired)

    def _stamp(self, seconds: float) -> str:
        """Return a point in time in the format of container runtimes, with nanoseconds."""
        return f"{format_time(self._time.moment(seconds))[:-1]}000Z"


class SimulatedRuntime:
    """Serves logs of pods on simulated nodes, and runs commands in their containers."""

    def __init__(self, rules: Rules, speed: float, *, clock: Clock) -> None:
        """Create an instance that uses the same behaviour rules and speed as the simulated kubelets."""
        self.rules = rules
        self.speed = speed
        self.services = Services(clock)
        self.executions = Executions(rules, self.services, speed, clock=clock)
        """Runs commands in simulated containers."""
        self._clock = clock

    @property
    def index(self) -> Services:
        """The Services as pods see them; the caller must pass every change of a Service to this object."""
        return self.services

    def logs(self, pod: Object, node: Object | None, options: LogOptions) -> ContainerLogReader | None:
        """Start reading a container's log; return None if the pod's node is not simulated. Raises `BadRequest`."""
        if node is None or not is_marked(node):
            return None
        return ContainerLogReader(pod, node, options, self, self._clock)

    def summary(self, node: Object, pods: Sequence[Unstructured]) -> Unstructured:
        """Return the resource usage of a node and its pods, in the format of a kubelet's `/stats/summary`."""
        return stats_summary(node.to_dict(), pods, self.rules, self._clock.now())

    def is_simulated(self, node: Object | None) -> bool:
        """Return whether a node has the label of simulated nodes."""
        return node is not None and is_marked(node)
