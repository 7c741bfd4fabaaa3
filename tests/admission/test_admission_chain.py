"""Tests of the admission chain: the order of plugins, repeated calls, and metrics."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from ctrlmgr.admission.admission_chain import Chain
from ctrlmgr.admission.admission_plugin import Decision, Plugin, Registration
from ctrlmgr.admission.plugin_registry import PLUGINS, default_chain
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import REFRESH
from ctrlmgr.errors import Forbidden
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.testing import FakeClock
from tests.admission.stage import Write
from tests.kinds.stage import KINDS, Objects

PODS = Resource("", "pods")


class RecordingPlugin(Plugin):
    """A plugin that notes each of its calls in the object."""

    name: ClassVar[str] = "Noting"

    def __init__(self, letter: str, *, reinvokes: bool = False, refuses: bool = False, waits: bool = False) -> None:
        self.letter, self.reinvokes, self.refuses, self.waits = letter, reinvokes, refuses, waits

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return resource == PODS

    def admit(self, attributes: Attributes) -> Decision:
        attributes.fields.setdefault("notes", []).append(self.letter)
        attributes.should_reinvoke |= self.reinvokes
        return self._waiting() if self.waits else None

    def validate(self, attributes: Attributes) -> None:
        attributes.fields["notes"].append(self.letter.upper())
        if self.refuses:
            raise attributes.forbidden(f"{self.letter} says no")

    def _waiting(self) -> Generator[Any, Any, None]:
        yield REFRESH


def run(chain: Chain, write: Write) -> list[Any]:
    """Run the mutating and the validating half of a chain; return the commands that the plugins yielded."""
    return [*chain.admit(write.attributes), *chain.validate(write.attributes)]


def test_mutating_plugins_precede_validating_plugins() -> None:
    write = Write("v1/pods", {})
    assert run(Chain([RecordingPlugin("a"), RecordingPlugin("b")], FakeClock()), write) == []
    assert write.attributes.fields["notes"] == ["a", "b", "A", "B"]


def test_mutating_plugins_are_called_a_second_time() -> None:
    write = Write("v1/pods", {})
    run(Chain([RecordingPlugin("a"), RecordingPlugin("b", reinvokes=True)], FakeClock()), write)
    assert write.attributes.fields["notes"] == ["a", "b", "a", "b", "A", "B"]


def test_a_plugin_can_be_asynchronous() -> None:
    write = Write("v1/pods", {})
    assert run(Chain([RecordingPlugin("a", waits=True), RecordingPlugin("b")], FakeClock()), write) == [REFRESH]


def test_the_first_refusal_ends_the_chain() -> None:
    write = Write("v1/pods", {})
    with pytest.raises(Forbidden, match="a says no"):
        run(Chain([RecordingPlugin("a", refuses=True), RecordingPlugin("b")], FakeClock()), write)
    assert write.attributes.fields["notes"] == ["a", "b", "A"]


def test_a_kind_without_plugins_costs_nothing() -> None:
    chain = Chain([RecordingPlugin("a")], FakeClock())
    assert not chain.handles(Resource("", "configmaps"), "", Verb.CREATE)
    write = Write("v1/configmaps", {})
    assert run(chain, write) == []
    assert "notes" not in write.attributes.fields


HOOKS = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "h"}}
HERE = {"kind": "LimitRange", "apiVersion": "v1", "metadata": {"name": "r", "namespace": "default"}}
ELSEWHERE = {"kind": "LimitRange", "apiVersion": "v1", "metadata": {"name": "r", "namespace": "elsewhere"}}


@pytest.mark.parametrize(
    ("registered", "notes"),
    [
        ((), ["a", "A"]),
        ((HOOKS,), ["a", "g", "A", "G"]),
        ((HERE,), ["a", "n", "A", "N"]),
        ((ELSEWHERE,), ["a", "A"]),
        ((HOOKS, HERE), ["a", "g", "n", "A", "G", "N"]),
    ],
)
def test_a_plugin_is_called_where_its_activating_kind_exists(
    registered: Sequence[Mapping[str, Any]], notes: list[str]
) -> None:
    everywhere, here = RecordingPlugin("g"), RecordingPlugin("n")
    everywhere.activated_by = Registration(Resource("", "nodes"))
    here.activated_by = Registration(Resource("", "limitranges"), of_namespace=True)
    chain = Chain([RecordingPlugin("a"), everywhere, here], FakeClock())
    write = Write("v1/pods", {}, None, *registered)
    run(chain, write)
    assert write.attributes.fields["notes"] == notes


class IterationCounter(Objects):
    """A list of plugins that counts how often it is iterated, and may change during a run of the chain."""

    def __init__(self, *existing: Mapping[str, Any]) -> None:
        super().__init__(Object.from_dict(each) for each in existing)
        self.listed = 0
        self.meanwhile: Sequence[Mapping[str, Any]] = ()

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        self.listed += 1
        found = super().list(resource, namespace)
        if self.meanwhile:
            self.put(*map(Object.from_dict, self.meanwhile))
            self.meanwhile = ()
        return found


def test_activating_kinds_are_searched_once_per_snapshot() -> None:
    here = RecordingPlugin("n")
    here.activated_by = Registration(Resource("", "limitranges"), of_namespace=True)
    chain = Chain([here], FakeClock())
    views = [IterationCounter(), IterationCounter(HERE)]
    for _ in range(3):
        for view, notes in zip(views, ([], ["n", "N"]), strict=True):
            write = Write("v1/pods", {})
            write.attributes.view = view
            run(chain, write)
            assert write.attributes.fields.get("notes", []) == notes
    assert [view.listed for view in views] == [1, 1]


def test_an_object_created_during_the_search_is_found_by_the_next_search() -> None:
    here = RecordingPlugin("n")
    here.activated_by = Registration(Resource("", "limitranges"), of_namespace=True)
    chain, view = Chain([here], FakeClock()), IterationCounter()
    view.meanwhile = [HERE]
    noted = []
    for _ in range(2):
        write = Write("v1/pods", {})
        write.attributes.view = view
        list(chain.admit(write.attributes))
        noted.append(write.attributes.fields.get("notes", []))
    assert noted == [[], ["n"]]


class PodReadingPlugin(RecordingPlugin):
    """A plugin whose decisions read the pods of one runtime class, and all bindings."""

    def needs(self, subresource: str) -> Sequence[str]:
        return () if subresource else ("runtimeClassName", "overhead")


@pytest.mark.parametrize(
    ("spec", "notes"),
    [
        ({}, ["a", "A"]),
        ({"nodeName": "n"}, ["a", "A"]),
        ({"overhead": {}}, ["n", "a", "N", "A"]),
        ({"runtimeClassName": "r"}, ["n", "a", "N", "A"]),
    ],
)
def test_a_plugin_is_called_for_specs_with_its_fields(spec: Mapping[str, Any], notes: list[str]) -> None:
    write = Write("v1/pods", {"spec": spec})
    run(Chain([PodReadingPlugin("n"), RecordingPlugin("a")], FakeClock()), write)
    assert write.attributes.fields["notes"] == notes


def test_a_field_can_be_set_by_an_earlier_plugin() -> None:
    class FieldSettingPlugin(RecordingPlugin):
        def admit(self, attributes: Attributes) -> Decision:
            attributes.fields["spec"]["overhead"] = {}
            return super().admit(attributes)

    write = Write("v1/pods", {"spec": {}})
    run(Chain([FieldSettingPlugin("a"), PodReadingPlugin("n")], FakeClock()), write)
    assert write.attributes.fields["notes"] == ["a", "n", "A", "N"]


def test_decisions_are_timed() -> None:
    def counted(rejected: str) -> float:
        labels = {"name": "Noting", "type": "validate", "operation": "CREATE", "rejected": rejected}
        name = "apiserver_admission_controller_admission_duration_seconds_count"
        return REGISTRY.get_sample_value(name, labels) or 0.0

    before = counted("true")
    chain = Chain([RecordingPlugin("a", refuses=True)], FakeClock())
    with pytest.raises(Forbidden):
        run(chain, Write("v1/pods", {}))
    assert counted("true") == before + 1


def test_plugins_have_the_names_under_which_they_are_listed() -> None:
    assert [plugin.name for plugin in default_chain(KINDS, FakeClock()).plugins] == [
        entry.name
        for entry in PLUGINS
        if entry.is_default and entry.make is not None and entry.name != "ServiceAccount"
    ]
