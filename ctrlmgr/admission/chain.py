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
from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import ApiError
from ctrlmgr.metrics import QUICK, AdmissionTimes


class _Link(NamedTuple):
    """One hook of one plugin."""

    decide: Callable[[Attributes], Decision]
    times: AdmissionTimes
    plugin: Plugin


class _Step(NamedTuple):
    """One half of admission, as one write meets it."""

    links: tuple[_Link, ...]
    times: AdmissionTimes | None
    """None: no plugin looks at such writes."""

    def by(self, there: Sequence[Registration]) -> _Step:
        """Return the same with what has something to do where these registrations have objects."""
        return self._replace(links=tuple(each for each in self.links if each.plugin.goes_by in (None, *there)))


class _Steps(NamedTuple):
    """Both halves."""

    mutating: _Step
    validating: _Step


class _Route:
    """The hooks that one kind of write meets."""

    def __init__(self, steps: _Steps) -> None:
        """Call the links of `steps` in their order."""
        self.steps = steps
        wanted = (each.plugin.goes_by for step in steps for each in step.links)
        self._registrations = tuple(dict.fromkeys(each for each in wanted if each is not None))
        self._by: dict[tuple[Registration, ...], _Steps] = {}
        self._last: tuple[State, Revision, str, _Steps] | None = None

    def awake(self, attributes: Attributes) -> _Steps:
        """Return the hooks that have something to do: what they go by is there.

        Writes that are decided on one revision look for that once.
        """
        if not self._registrations:
            return self.steps
        view, namespace = attributes.view, attributes.namespace
        revision, last = view.revision, self._last
        if last is not None and last[1] == revision and last[0] is view and last[2] == namespace:
            return last[3]
        steps = self._steps(view, namespace)
        self._last = (view, revision, namespace, steps)
        return steps

    def _steps(self, view: State, namespace: str) -> _Steps:
        there = tuple(
            [each for each in self._registrations if view.list(each.resource, namespace if each.of_namespace else None)]
        )
        steps = self._by.get(there)
        if steps is None:
            steps = self._by[there] = _Steps(self.steps.mutating.by(there), self.steps.validating.by(there))
        return steps


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
        return any(step.links for step in self._route(resource, subresource, operation).steps)

    def wants_object(self, attributes: Attributes) -> bool:
        """Whether any plugin that looks at this write needs its object."""
        return any(link.plugin.wants_object(attributes) for step in self._steps(attributes) for link in step.links)

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Have the object changed; raises what a plugin refuses it with."""
        yield from self._pass(self._steps(attributes).mutating, attributes)
        if attributes.should_reinvoke:
            attributes.is_reinvocation = True
            yield from self._pass(self._steps(attributes).mutating, attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Have the object judged; raises what a plugin refuses it with."""
        return self._pass(self._steps(attributes).validating, attributes)

    def _steps(self, attributes: Attributes) -> _Steps:
        return self._route(attributes.resource, attributes.subresource, attributes.operation).awake(attributes)

    def _pass(self, step: _Step, attributes: Attributes) -> Operation[None]:
        if step.times is None:
            return
        now = self._clock.monotonic
        start = began = now()
        for decide, times, plugin in step.links:
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
            mutating = [(plugin, plugin.admit) for plugin in asked if plugin.mutates(resource)]
            validating = [(plugin, plugin.validate) for plugin in asked if plugin.validates(resource)]
            steps = _Steps(self._step("admit", operation, mutating), self._step("validate", operation, validating))
            route = self._routes[key] = _Route(steps)
        return route

    def _step(
        self, type_: str, operation: Verb, hooks: Sequence[tuple[Plugin, Callable[[Attributes], Decision]]]
    ) -> _Step:
        links = [_Link(decide, self._timed(plugin.name, type_, operation), plugin) for plugin, decide in hooks]
        return _Step(tuple(links), self._timed("", type_, operation) if links else None)

    def _timed(self, name: str, type_: str, operation: Verb) -> AdmissionTimes:
        """Return the times of a plugin (or, without a name, of the whole step), which routes share."""
        key = (name, type_, operation)
        if key not in self._times:
            self._times[key] = AdmissionTimes(name, type_, operation)
        return self._times[key]
