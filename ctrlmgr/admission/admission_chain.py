"""The admission chain calls mutating plugins, and later validating plugins, in their order.

Guarantees:
- A write that no plugin handles costs one table look-up. A plugin with `activated_by` is called only if objects of that
  resource exist.
- Each plugin sees the object with the changes of the plugins before it. If a plugin sets `Attributes.should_reinvoke`,
  all mutating plugins are called again, but only once (apiserver `pkg/admission/reinvocation.go`).
- If a plugin refuses a write, the plugins after it are not called.
- Metrics with kube-apiserver's names contain the duration of every call, including the time for which the plugin
  waited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.admission.admission_metrics import StepTimes
from ctrlmgr.admission.admission_plugin import Decision, Plugin, Registration
from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import ApiError
from ctrlmgr.tracing import spans

_LOOKS: Final = 1024
"""The maximum number of cached entries for each kind of write; an entry belongs to one namespace and one view."""
_LONGEST: Final = 253
"""The maximum length, in characters, of a namespace's name in the cache.

A request may name a namespace that does not exist.
"""


class _Link(NamedTuple):
    """One hook (`admit` or `validate`) of one plugin."""

    decide: Callable[[Attributes], Decision]
    needs: frozenset[str]
    """Fields of an object's spec; the hook is called only if the object sets at least one of these fields.

    If the set of fields is empty, the hook is always called.
    """
    plugin: Plugin


class _Step:
    """The hooks of one half of admission (mutating or validating) for one kind of write."""

    def __init__(self, type_: str, operation: Verb, links: Sequence[_Link]) -> None:
        """Create a step that calls `links` in their order; the type is `admit` or `validate`."""
        self._type, self._operation = type_, operation
        self.links = tuple(links)
        self.times = StepTimes(type_, operation, [each.plugin.name for each in links])

    def traced(self, index: int, decide: Callable[[Attributes], Decision], attributes: Attributes) -> Operation[None]:
        """Call a hook, and trace the call as a separate span."""
        with spans.span(f"admission {self.links[index].plugin.name}", phase=self._type):
            waiting = decide(attributes)
            if waiting is not None:
                yield from waiting

    def by(self, there: Sequence[Registration]) -> _Step:
        """Return a copy of the step that calls only hooks of active plugins."""
        links = [each for each in self.links if each.plugin.activated_by in (None, *there)]
        return _Step(self._type, self._operation, links)


class _Steps(NamedTuple):
    """The mutating and the validating half of admission."""

    mutating: _Step
    validating: _Step


class _ActiveHooks(msgspec.Struct):
    """The hooks that are active in a namespace, at a view's revision."""

    revision: Revision
    changed_at: Revision
    """The revision of the last change to the resources whose objects activate plugins."""
    steps: _Steps


class _Route:
    """The hooks that are called for one kind of write."""

    def __init__(self, steps: _Steps) -> None:
        """Create the hooks of both steps; each step calls its `links` in their order."""
        self.steps = steps
        required = (each.plugin.activated_by for step in steps for each in step.links)
        self._registrations = tuple(dict.fromkeys(each for each in required if each is not None))
        self._registered = tuple(dict.fromkeys(each.resource for each in self._registrations))
        self._by: dict[tuple[Registration, ...], _Steps] = {}
        # The active hooks by view and namespace. Threads with their own views share this cache.
        self._looks: BoundedCache[tuple[State, str], _ActiveHooks] = BoundedCache(
            "admission-hooks", entries=_LOOKS, largest=_LONGEST
        )

    def active(self, view: State, namespace: str) -> _Steps:
        """Return the hooks of the active plugins: the objects that activate these plugins exist.

        The returned hooks are cached until one of the resources that activate plugins may have changed.
        """
        if not self._registrations:
            return self.steps
        revision, look = view.revision, self._looks.get((view, namespace))
        if look is not None:
            if look.revision == revision:
                return look.steps
            if look.changed_at == view.changed_at(self._registered):
                look.revision = revision
                return look.steps
        # The revision is read first, so that concurrent changes invalidate the result.
        changed_at = view.changed_at(self._registered)
        steps = self._steps(view, namespace)
        self._looks.put((view, namespace), _ActiveHooks(revision, changed_at, steps), len(namespace))
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
    """The chain of all enabled plugins, as one `engine.admission_attributes.Admission`."""

    def __init__(self, plugins: Sequence[Plugin], clock: Clock) -> None:
        """Create a chain that calls `plugins` in their order."""
        self.plugins = tuple(plugins)
        self._clock = clock
        self._routes: dict[tuple[Resource, str, Verb], _Route] = {}

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether any plugin handles writes of this kind."""
        return any(step.links for step in self._route(resource, subresource, operation).steps)

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether any plugin that handles this write needs the object of the write."""
        return any(link.plugin.wants_object(attributes) for step in self._steps(attributes) for link in step.links)

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Run the mutating plugins; if a plugin refuses the write, raises the plugin's error."""
        yield from self._pass(self._steps(attributes).mutating, attributes)
        if attributes.should_reinvoke:
            attributes.is_reinvocation = True
            yield from self._pass(self._steps(attributes).mutating, attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Run the validating plugins; if a plugin refuses the write, raises the plugin's error."""
        return self._pass(self._steps(attributes).validating, attributes)

    def _steps(self, attributes: Attributes) -> _Steps:
        return self._route_of(attributes).active(attributes.view, attributes.namespace)

    def _route_of(self, attributes: Attributes) -> _Route:
        return self._route(attributes.resource, attributes.subresource, attributes.operation)

    def _pass(self, step: _Step, attributes: Attributes) -> Operation[None]:
        if not step.links:
            return
        now = self._clock.monotonic
        ends = [now()]
        decided = ends.append
        tracing = spans.tracer is not None
        try:
            for decide, needs, _ in step.links:
                if needs and needs.isdisjoint(attributes.fields.get("spec") or ()):
                    decided(ends[-1])
                    continue
                if tracing:
                    yield from step.traced(len(ends) - 1, decide, attributes)
                else:
                    waiting = decide(attributes)
                    if waiting is not None:
                        yield from waiting
                decided(now())
        except ApiError as error:
            error.refused_by = error.refused_by or step.links[len(ends) - 1].plugin.name
            decided(now())
            step.times.refused(ends)
            raise
        step.times.count_accepted(ends)

    def _route(self, resource: Resource, subresource: str, operation: Verb) -> _Route:
        key = (resource, subresource, operation)
        route = self._routes.get(key)
        if route is None:
            plugins = [plugin for plugin in self.plugins if plugin.handles(resource, subresource, operation)]
            mutating = [_link(plugin, plugin.admit, subresource) for plugin in plugins if plugin.mutates(resource)]
            judging = [_link(plugin, plugin.validate, subresource) for plugin in plugins if plugin.validates(resource)]
            steps = _Steps(_Step("admit", operation, mutating), _Step("validate", operation, judging))
            route = self._routes[key] = _Route(steps)
        return route


def _link(plugin: Plugin, decide: Callable[[Attributes], Decision], subresource: str) -> _Link:
    return _Link(decide, frozenset(plugin.needs(subresource)), plugin)
