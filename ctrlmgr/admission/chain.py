"""The admission chain: plugins in their order, first those that change a write, then those that only judge it.

Guarantees:
- A write that no plugin handles costs one look into a table; where nothing is registered that a plugin goes by, the
  plugin is not called.
- Plugins see what those before them made of the object. If one asks for it (`Attributes.should_reinvoke`), all that
  change objects are called once more, never twice more (apiserver `pkg/admission/reinvocation.go`).
- What one plugin refuses is refused: those after it are not asked.
- Every call is timed under kube-apiserver's metric names, with what it waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctrlmgr.admission.plugin import Decision, Plugin, Registration
from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import Clock
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import ApiError
from ctrlmgr.metrics import QUICK, AdmissionTimes


class _Link(NamedTuple):
    """One hook of one plugin."""

    decide: Callable[[Attributes], Decision]
    times: AdmissionTimes
    plugin: Plugin


class _Step:
    """The hooks of one half of admission that one kind of write meets."""

    def __init__(self, links: Sequence[_Link], times: AdmissionTimes) -> None:
        """Call `links` in their order."""
        self.links = tuple(links)
        self.times = times
        wanted = (each.plugin.goes_by for each in links)
        self._registrations = tuple(dict.fromkeys(each for each in wanted if each is not None))
        self._awake: dict[tuple[Registration, ...], tuple[_Link, ...]] = {}

    def awake(self, attributes: Attributes) -> tuple[_Link, ...]:
        """Return those that have something to do: what they go by is there."""
        objects, namespace = attributes.view.list, attributes.namespace
        there = tuple(
            [each for each in self._registrations if objects(each.resource, namespace if each.of_namespace else None)]
        )
        links = self._awake.get(there)
        if links is None:
            links = tuple(each for each in self.links if each.plugin.goes_by in (None, *there))
            self._awake[there] = links
        return links


class _Route(NamedTuple):
    mutating: _Step
    validating: _Step


class Chain:
    """All plugins that are switched on, as one `engine.attributes.Admission`."""

    def __init__(self, plugins: Sequence[Plugin], clock: Clock) -> None:
        """Call `plugins` in their order."""
        self.plugins = tuple(plugins)
        self._clock = clock
        self._routes: dict[tuple[Resource, str, Verb], _Route] = {}
        self._times: dict[tuple[str, str, Verb], AdmissionTimes] = {}

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Whether any plugin looks at such writes."""
        route = self._route(resource, subresource, operation)
        return bool(route.mutating.links or route.validating.links)

    def wants_object(self, attributes: Attributes) -> bool:
        """Whether any plugin that looks at this write needs its object."""
        route = self._route(attributes.resource, attributes.subresource, attributes.operation)
        return any(link.plugin.wants_object(attributes) for step in route for link in step.awake(attributes))

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Have the object changed; raises what a plugin refuses it with."""
        step = self._route(attributes.resource, attributes.subresource, attributes.operation).mutating
        if not step.links:
            return
        yield from self._pass(step, attributes)
        if attributes.should_reinvoke:
            attributes.is_reinvocation = True
            yield from self._pass(step, attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Have the object judged; raises what a plugin refuses it with."""
        step = self._route(attributes.resource, attributes.subresource, attributes.operation).validating
        if step.links:
            yield from self._pass(step, attributes)

    def _pass(self, step: _Step, attributes: Attributes) -> Operation[None]:
        now = self._clock.monotonic
        start = began = now()
        for decide, times, plugin in step.awake(attributes):
            try:
                waiting = decide(attributes)
                if waiting is not None:
                    yield from waiting
            except ApiError as error:
                error.refused_by = error.refused_by or plugin.name
                ended = now()
                times.observe(ended - began, rejected=True)
                step.times.observe(ended - start, rejected=True)
                raise
            ended = now()
            took, began = ended - began, ended
            if took < QUICK:  # as `observe` would, which is called as often as all plugins are
                times.counts[0][0] += 1
                times.totals[0] += took
            else:
                times.observe(took)
        step.times.observe(began - start)

    def _route(self, resource: Resource, subresource: str, operation: Verb) -> _Route:
        key = (resource, subresource, operation)
        route = self._routes.get(key)
        if route is None:
            asked = [plugin for plugin in self.plugins if plugin.handles(resource, subresource, operation)]
            mutating = [(plugin, plugin.admit) for plugin in asked if plugin.mutates()]
            validating = [(plugin, plugin.validate) for plugin in asked if plugin.validates()]
            route = _Route(
                self._step("admit", operation, mutating),
                self._step("validate", operation, validating),
            )
            self._routes[key] = route
        return route

    def _step(
        self, type_: str, operation: Verb, hooks: Sequence[tuple[Plugin, Callable[[Attributes], Decision]]]
    ) -> _Step:
        links = [_Link(decide, self._timed(plugin.name, type_, operation), plugin) for plugin, decide in hooks]
        return _Step(links, self._timed("", type_, operation))

    def _timed(self, name: str, type_: str, operation: Verb) -> AdmissionTimes:
        """Return the times of a plugin (or, without a name, of the whole step), which routes share."""
        key = (name, type_, operation)
        if key not in self._times:
            self._times[key] = AdmissionTimes(name, type_, operation)
        return self._times[key]
