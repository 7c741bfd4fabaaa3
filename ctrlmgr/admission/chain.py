"""The admission chain: plugins in their order, first those that change a write, then those that only judge it.

Guarantees:
- A write that no plugin handles costs one look into a table.
- Plugins see what those before them made of the object. If one asks for it (`Attributes.should_reinvoke`), all that
  change objects are called once more, never twice more (apiserver `pkg/admission/reinvocation.go`).
- What a plugin refuses is refused; its name is the cause in the error's `admitted_by`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctrlmgr.admission.plugin import Decision, Plugin
from ctrlmgr.admission.timing import AdmissionMetrics, Phase
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.resources.operations import Operation


class _Link(NamedTuple):
    """One hook of one plugin."""

    name: str
    decide: Callable[[Attributes], Decision]


class _Route(NamedTuple):
    """The hooks that one kind of write meets."""

    mutating: tuple[_Link, ...]
    validating: tuple[_Link, ...]


class Chain:
    """All plugins that are switched on, as one `engine.attributes.Admission`."""

    def __init__(self, plugins: Sequence[Plugin], metrics: AdmissionMetrics) -> None:
        """Call `plugins` in their order."""
        self.plugins = tuple(plugins)
        self._metrics = metrics
        self._routes: dict[tuple[Resource, str, Verb], _Route] = {}

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Whether any plugin looks at such writes."""
        return any(self._route(resource, subresource, operation))

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Have the object changed; raises what a plugin refuses it with."""
        links = self._route(attributes.resource, attributes.subresource, attributes.operation).mutating
        if not links:
            return
        yield from self._pass(Phase.ADMIT, links, attributes)
        if attributes.should_reinvoke:
            attributes.is_reinvocation = True
            yield from self._pass(Phase.ADMIT, links, attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Have the object judged; raises what a plugin refuses it with."""
        links = self._route(attributes.resource, attributes.subresource, attributes.operation).validating
        if links:
            yield from self._pass(Phase.VALIDATE, links, attributes)

    def _pass(self, phase: Phase, links: Sequence[_Link], attributes: Attributes) -> Operation[None]:
        with self._metrics.step(phase, attributes):
            for name, decide in links:
                with self._metrics.plugin(name, phase, attributes):
                    waiting = decide(attributes)
                    if waiting is not None:
                        yield from waiting

    def _route(self, resource: Resource, subresource: str, operation: Verb) -> _Route:
        key = (resource, subresource, operation)
        route = self._routes.get(key)
        if route is None:
            asked = [plugin for plugin in self.plugins if plugin.handles(resource, subresource, operation)]
            route = self._routes[key] = _Route(
                tuple(_Link(plugin.name, plugin.admit) for plugin in asked if plugin.mutates()),
                tuple(_Link(plugin.name, plugin.validate) for plugin in asked if plugin.validates()),
            )
        return route
