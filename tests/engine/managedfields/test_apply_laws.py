"""Property tests of server-side apply in any order, with and without force."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.managedfields.schema_merge_types import merge_type_of
from ctrlmgr.errors import ApplyConflict
from ctrlmgr.schema.definitions import Definitions
from tests.engine.managedfields.stored import CORE, StoredObject

names = st.sampled_from("abcd")
data = st.dictionaries(names, st.sampled_from("12"), max_size=4)
containers = st.dictionaries(
    names,
    st.fixed_dictionaries(
        {},
        optional={
            "image": st.sampled_from("xy"),
            "command": st.lists(names, min_size=1, max_size=2),
            "ports": st.lists(st.sampled_from([80, 443]), unique=True, min_size=1).map(
                lambda numbers: [{"containerPort": number, "protocol": "TCP"} for number in numbers]
            ),
            "resources": st.fixed_dictionaries({"limits": st.just({"cpu": "1"})}),
        },
    ),
    max_size=3,
).map(lambda named: [{"name": name, **container} for name, container in named.items()])
finalizers = st.lists(names.map("x/{}".format), unique=True, max_size=3)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    pod: dict[str, Any] = {"metadata": {"labels": draw(data), "finalizers": draw(finalizers)}}
    pod["spec"] = {"containers": draw(containers), "nodeSelector": draw(data)}
    if draw(st.booleans()):
        pod["spec"]["nodeName"] = draw(names)
    for part in (pod["metadata"], pod["spec"]):
        for name in [name for name, value in part.items() if not value]:
            del part[name]
    return pod


def in_order(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod in which each list is sorted whose order has no owner."""
    pod = copy.deepcopy(pod)
    for container in pod.get("spec", {}).get("containers", ()):
        container.get("ports", []).sort(key=lambda port: port["containerPort"])
    pod.get("spec", {}).get("containers", []).sort(key=lambda container: container["name"])
    pod["metadata"].get("finalizers", []).sort()
    return pod


@settings(deadline=None)
@given(data, data)
def test_a_conflict_is_a_different_value_of_another_managers_field(
    ours: dict[str, str], theirs: dict[str, str]
) -> None:
    stored = StoredObject()
    stored.update("owner", stored.body(data=ours))
    expected = {f".data.{name}" for name, value in theirs.items() if ours.get(name, value) != value}
    if expected:
        with pytest.raises(ApplyConflict) as conflict:
            stored.apply("alice", data=theirs)
        assert conflict.value.details is not None
        assert {cause.field for cause in conflict.value.details.causes} == expected
    stored.apply("alice", data=theirs, force=bool(expected))
    assert (stored["data"] or {}) == ours | theirs


@settings(deadline=None)
@given(data, data)
def test_unapplying_removes_fields_without_other_managers(ours: dict[str, str], theirs: dict[str, str]) -> None:
    stored = StoredObject()
    stored.update("owner", stored.body(data=ours))
    stored.apply("alice", data=theirs, force=True)
    stored.apply("alice")
    shared = {name for name, value in theirs.items() if ours.get(name) == value}
    left = {name: value for name, value in ours.items() if name not in theirs or name in shared}
    assert (stored["data"] or {}) == left
    assert "alice" not in [managed.manager for managed in stored.managed]


@settings(deadline=None)
@given(pods(), pods())
def test_applying_is_idempotent(first: dict[str, Any], second: dict[str, Any]) -> None:
    stored = StoredObject(f"{CORE}.Pod")
    stored.update("owner", stored.body(**copy.deepcopy(first)))
    stored.apply("alice", **copy.deepcopy(second), force=True)
    writes, after = stored.writes, copy.deepcopy(stored.object)
    stored.apply("alice", **copy.deepcopy(second))
    assert (stored.writes, stored.object) == (writes, after)


@settings(deadline=None)
@given(pods())
def test_unapplying_all_fields_leaves_an_empty_object(pod: dict[str, Any]) -> None:
    stored = StoredObject(f"{CORE}.Pod")
    stored.apply("alice", **copy.deepcopy(pod))
    stored.apply("alice")
    empty = StoredObject(f"{CORE}.Pod")
    empty.apply("alice")
    assert stored.object == empty.object


@settings(deadline=None)
@given(pods(), pods())
def test_a_difference_transforms_one_object_into_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    merge_type = merge_type_of(Definitions.builtin().schema(f"{CORE}.Pod"))
    added, modified, removed = ({} if each is None else each for each in merge_type.compare(old, new))
    back = tuple({} if each is None else each for each in merge_type.compare(new, old))
    assert back == (removed, modified, added)
    everything = field_set.union(merge_type.compare({}, old)[0] or {}, added)
    assert field_set.difference(everything, removed) == (merge_type.compare({}, new)[0] or {})
    assert (in_order(old) == in_order(new)) == (not (added or modified or removed))


class Managers(RuleBasedStateMachine):
    """A state machine: several managers write one pod."""

    def __init__(self) -> None:
        super().__init__()
        self.stored = StoredObject(f"{CORE}.Pod")
        self.merge_type = merge_type_of(Definitions.builtin().schema(f"{CORE}.Pod"))

    @rule(manager=st.sampled_from(["ann", "bob"]), pod=pods(), force=st.booleans())
    def apply(self, manager: str, pod: dict[str, Any], force: bool) -> None:
        before = copy.deepcopy(self.stored.object)
        try:
            self.stored.apply(manager, force=force, **copy.deepcopy(pod))
        except ApplyConflict:
            assert not force
            assert self.stored.object == before
            return
        merged = self.merge_type.merge(self.stored.object, self.stored.body(**pod))
        assert self.stored.codec.read(copy.deepcopy(merged)).fields == self.stored.object, "what was applied is there"

    @rule(manager=st.sampled_from(["cyd", "dan"]), pod=pods())
    def update(self, manager: str, pod: dict[str, Any]) -> None:
        before = self.stored.object or {}
        self.stored.update(manager, self.stored.body(**copy.deepcopy(pod)))
        added, modified, _ = self.merge_type.compare(before, self.stored.object)
        changed = field_set.union(added or {}, modified or {})
        own = [each.fields for each in self.stored.managed if (each.manager, each.operation) == (manager, "Update")]
        if before.get("metadata", {}).get("managedFields") or not before:
            assert not field_set.difference(changed, own[0] if own else {}), "who changed it manages it"

    @precondition(lambda self: self.stored.object)
    @rule()
    def clear(self) -> None:
        live = copy.deepcopy(self.stored.object) or {}
        live["metadata"]["managedFields"] = [{}]
        self.stored.update("admin", live)
        assert not self.stored.managed

    @invariant()
    def managers_manage_what_is_there(self) -> None:
        there = self.merge_type.compare({}, self.stored.object)[0] or {}
        there = self.merge_type.named(field_set.union(there, self.merge_type.owned(self.stored.object) or {}))
        for managed in self.stored.managed:
            assert managed.fields
            assert managed.fields == field_set.decode(managed.fields)
            assert not field_set.difference(managed.fields, there), managed


Managers.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
TestManagers = Managers.TestCase
