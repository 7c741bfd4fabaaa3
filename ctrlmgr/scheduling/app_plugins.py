"""Defines scheduler plugins that an app declares: functions that refuse nodes for pods, or score nodes for pods.

Guarantees: a function is called with the scheduler's own view of the pod and the node, which it must not change. An
error in a function, or a score outside of 0 to 100, fails only the decision about the current pod, as in
kube-scheduler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, overload

from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo

Filter: TypeAlias = Callable[[PodInfo, NodeInfo], str | None]
"""A function that returns the reason why a node is not suitable for a pod; None or "" if it is suitable."""
Score: TypeAlias = Callable[[PodInfo, NodeInfo], int]
"""A function that returns how suitable a node is for a pod, as a number from 0 to 100."""

HIGHEST: Final = 100


class PluginError(Exception):
    """Raised if a plugin fails; the message names the plugin."""

    def __init__(self, plugin: str, message: str) -> None:
        """Create the error of a plugin."""
        super().__init__(message)
        self.plugin = plugin


class AppFilter(NamedTuple):
    """A filter of an app."""

    name: str
    function: Filter

    def refusal(self, pod: PodInfo, node: NodeInfo) -> str:
        """Return the reason why the node is not suitable, "" if the node is suitable.

        Raises `PluginError` on failure.
        """
        try:
            return self.function(pod, node) or ""
        except Exception as error:
            raise PluginError(self.name, f'running "{self.name}" filter plugin: {error}') from error


class AppScore(NamedTuple):
    """A score of an app, and its weight."""

    name: str
    function: Score
    weight: int = 1

    def scores(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> list[int]:
        """Return the scores of the nodes; raises `PluginError` if the function fails or a score is out of range."""
        return [self._score(pod, node) for node in nodes]

    def _score(self, pod: PodInfo, node: NodeInfo) -> int:
        try:
            found = self.function(pod, node)
        except Exception as error:
            raise PluginError(self.name, f'running Score plugins: plugin "{self.name}" failed with: {error}') from error
        if type(found) is not int or not 0 <= found <= HIGHEST:
            problem = f"returns an invalid score {found}, it should in the range of [0, {HIGHEST}] after normalizing"
            raise PluginError(self.name, f'plugin "{self.name}" {problem}')
        return found


class SchedulerPlugins:
    """The filters and scores of an app; `@scheduler.filter` and `@scheduler.score` add a function."""

    def __init__(self, filters: Sequence[AppFilter] = (), scores: Sequence[AppScore] = ()) -> None:
        """Create a collection of plugins."""
        self.filters = [*filters]
        self.scores = [*scores]

    @classmethod
    def union(cls, several: Sequence[SchedulerPlugins]) -> SchedulerPlugins:
        """Return the plugins of several apps, in the order of the apps."""
        filters = [each for one in several for each in one.filters]
        return cls(filters, [each for one in several for each in one.scores])

    def filter(self, function: Filter) -> Filter:
        """Call a function for each node that the built-in plugins accept.

        The function takes a pod and a node, and returns the reason why the node is not suitable; None if the node is
        suitable. The reason is part of the pod's condition PodScheduled. The plugin is named after the function.
        """
        self.filters.append(AppFilter(self._name(function), function))
        return function

    @overload
    def score(self, function: Score) -> Score: ...

    @overload
    def score(self, *, weight: int = 1) -> Callable[[Score], Score]: ...

    def score(self, function: Score | None = None, *, weight: int = 1) -> Any:
        """Add the result of a function, multiplied by `weight`, to the score of each suitable node.

        The function takes a pod and a node, and returns a number from 0 to 100. The plugin is named after the function.
        """
        if type(weight) is not int or weight < 1:
            raise TypeError(f"score: weight must be a whole number above 0, not {weight!r}")

        def decorate(function: Score) -> Score:
            self.scores.append(AppScore(self._name(function), function, weight))
            return function

        return decorate if function is None else decorate(function)

    def _name(self, function: Callable[..., Any]) -> str:
        name = function.__name__
        if inspect.iscoroutinefunction(function) or len(inspect.signature(function).parameters) != 2:
            raise TypeError(f"scheduler plugin {name}: write `def {name}(pod, node)`; the scheduler calls it directly")
        if name in {*(each.name for each in self.filters), *(each.name for each in self.scores)}:
            raise TypeError(f"scheduler plugin {name}: the app already has a scheduler plugin with this name")
        return name
