"""The admission chain: plugins in their order, first those that change a write, then those that only judge it.

Guarantees:
- A write that no plugin handles costs one look into a table. A plugin that is activated by registered objects is not
  called where there are none.
- Plugins see what those before them made of the object. If one asks for it (`Attributes.should_reinvoke`), all that
  change objects are called once more, never twice more (apiserver `pkg/admission/reinvocation.go`).
- What one plugin refuses is refused: those after it are not asked.
- Every call is timed under kube-apiserver's metric names, with what it waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.admission.plugin import Decision, Plugin, Registration
from ctrlmgr.admission.times import StepTimes
from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import ApiError

_LOOKS: Final = 1024
"""Namespaces for which a kind of write caches what has something to do there, of all views together."""
_LONGEST: Final = 253
"""Characters of the name of such a namespace, which need not exist."""


class _Link(NamedTuple):
    """One hook of one plugin."""

    decide: Callable[[Attributes], Decision]
    needs: frozenset[str]
    """Fields of a spec, of which one must be there; none: it is always called."""
    plugin: Plugin


class _Step:
    """One half of admission, as one kind of write meets it."""

    def __init__(self, type_: str, operation: Verb, links: Sequence[_Link]) -> None:
        """Call `links` in their order; the type is `admit` or `validate`."""
        self._type, self._operation = type_, operation
        self.links = tuple(links)
        self.times = StepTimes(type_, operation, [each.plugin.name for each in links])

    def by(self, there: Sequence[Registration]) -> _Step:
        """Return the same with what has something to do where these registrations have objects."""
        links = [each for each in self.links if each.plugin.activated_by in (None, *there)]
        return _Step(self._type, self._operation, links)


class _Steps(NamedTuple):
    """Both halves."""

    mutating: _Step
    validating: _Step


class _Look(msgspec.Struct):
    """What has something to do in a namespace, as of a view's revision."""

    revision: Revision
    changed_at: Revision
    """That of what may be registered."""
    steps: _Steps


class _Route:
    """The hooks that one kind of write meets."""

    def __init__(self, steps: _Steps) -> None:
        """Call the links of `steps` in their order."""
        self.steps = steps
        wanted = (each.plugin.activated_by for step in steps for each in step.links)
        self._registrations = tuple(dict.fromkeys(each for each in wanted if each is not None))
        self._registered = tuple(dict.fromkeys(each.resource for each in self._registrations))
        self._by: dict[tuple[Registration, ...], _Steps] = {}
        # By view and namespace. Threads with views of their own share it.
        self._looks: BoundedCache[tuple[State, str], _Look] = BoundedCache(
            "admission-hooks", entries=_LOOKS, largest=_LONGEST
        )

    def active(self, view: State, namespace: str) -> _Steps:
        """Return the hooks of the plugins that are active: what activates them exists.

        It is looked up again only if one of these resources may have changed.
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
        changed_at = view.changed_at(self._registered)  # asked for first: what comes meanwhile is looked for again
        steps = self._steps(view, namespace)
        self._looks.put((view, namespace), _Look(revision, changed_at, steps), len(namespace))
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
        return self._route_of(attributes).active(attributes.view, attributes.namespace)

    def _route_of(self, attributes: Attributes) -> _Route:
        return self._route(attributes.resource, attributes.subresource, attributes.operation)

    def _pass(self, step: _Step, attributes: Attributes) -> Operation[None]:
        if not step.links:
            return
        now = self._clock.monotonic
        ends = [now()]
        decided = ends.append
        try:
            for decide, needs, _ in step.links:
                if needs and needs.isdisjoint(attributes.fields.get("spec") or ()):
                    decided(ends[-1])
                    continue
                waiting = decide(attributes)
                if waiting is not None:
                    yield from waiting
                decided(now())
        except ApiError as error:
            error.refused_by = error.refused_by or step.links[len(ends) - 1].plugin.name
            decided(now())
            step.times.refused(ends)
            raise
        step.times.let_in(ends)

    def _route(self, resource: Resource, subresource: str, operation: Verb) -> _Route:
        key = (resource, subresource, operation)
        route = self._routes.get(key)
        if route is None:
            asked = [plugin for plugin in self.plugins if plugin.handles(resource, subresource, operation)]
            mutating = [_link(plugin, plugin.admit, subresource) for plugin in asked if plugin.mutates(resource)]
            judging = [_link(plugin, plugin.validate, subresource) for plugin in asked if plugin.validates(resource)]
            steps = _Steps(_Step("admit", operation, mutating), _Step("validate", operation, judging))
            route = self._routes[key] = _Route(steps)
        return route


def _link(plugin: Plugin, decide: Callable[[Attributes], Decision], subresource: str) -> _Link:
    return _Link(decide, frozenset(plugin.needs(subresource)), plugin)
