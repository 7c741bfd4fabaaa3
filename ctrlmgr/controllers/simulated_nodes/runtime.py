"""What runs on simulated nodes, as seen from the API: logs, and why there is nothing to execute commands in.

Guarantees: only pods on nodes with our mark are spoken for. Logs are what the simulation wrote, by the rules of the
pod's status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctrlmgr.api.object import Object
from ctrlmgr.clock import Clock, parse_time
from ctrlmgr.controllers.simulated_nodes.clockwork import PodTime, asked_of
from ctrlmgr.controllers.simulated_nodes.controller import is_marked
from ctrlmgr.errors import ApiError, BadRequest
from ctrlmgr.simulation.behaviour import Says
from ctrlmgr.simulation.logs import Wanted, log_of

Query = Mapping[str, Sequence[str]]


class SimulatedRuntime:
    """Speaks for pods on simulated nodes."""

    def __init__(self, rules: Sequence[Says], speed: float, *, clock: Clock) -> None:
        """Go by the same rules and speed as the kubelets."""
        self._rules = rules
        self._speed = speed
        self._clock = clock

    def logs(self, pod: Object, node: Object | None, query: Query) -> str | None:
        """Return what a container has written, None if its node is not simulated; raises `BadRequest`."""
        if node is None or not is_marked(node):
            return None
        fields = pod.to_dict()
        containers = [each["name"] for each in fields["spec"].get("containers") or ()]
        name = _first(query, "container")
        if not name:
            if len(containers) > 1:
                choice = " ".join(containers)
                raise BadRequest(f"a container name must be specified for pod {pod.name}, choose one of: [{choice}]")
            name = containers[0]
        now = self._clock.now()
        time = PodTime.of(fields, now, self._speed)
        try:
            wanted = _wanted(query, name, now)
            asked = asked_of(fields, self._rules, node.annotations)
            return log_of(fields, asked, time.seconds(now), time.end(fields), time.write, wanted)
        except (LookupError, ValueError) as error:
            raise BadRequest(str(error.args[0] if error.args else error)) from error

    def refusal(self, node: Object | None, what: str) -> ApiError | None:
        """Return why a pod on a simulated node cannot be connected to, None if its node is not simulated."""
        if node is None or not is_marked(node):
            return None
        return BadRequest(f"node {node.name} is simulated: nothing is executed there, so {what} has nothing to reach")


def _wanted(query: Query, name: str, now: int) -> Wanted:
    since = _number(query, "sinceSeconds")
    if since is None and (text := _first(query, "sinceTime")):
        since = max(now - parse_time(text), 0) // 1_000_000
    return Wanted(
        name,
        previous=_first(query, "previous") in ("true", "1"),
        timestamps=_first(query, "timestamps") in ("true", "1"),
        tail=_number(query, "tailLines"),
        since=None if since is None else float(since),
        limit=_number(query, "limitBytes"),
    )


def _first(query: Query, name: str) -> str:
    return next(iter(query.get(name) or ()), "")


def _number(query: Query, name: str) -> int | None:
    text = _first(query, name)
    return int(text) if text else None
