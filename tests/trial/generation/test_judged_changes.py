"""Changes of one property are judged as the API server judges them."""

from __future__ import annotations

import copy
from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.trial.generation.first_state import first_state
from ctrlmgr.trial.generation.judged_changes import Change, as_stored, changes, errors_of
from tests.trial.generation.kinds import SPEC, kind_of


def found(seed: int = 1) -> list[Change]:
    definition, version = kind_of(SPEC)
    return [*changes(version, first_state(definition, version, Random(seed)), Random(seed))]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1_000))
def test_valid_is_really_valid_and_nearly_valid_is_really_refused(seed: int) -> None:
    _, version = kind_of(SPEC)
    for change in found(seed):
        again = errors_of(version, copy.deepcopy(change.after), change.before)
        assert bool(again) != change.is_valid
        assert not change.is_valid or as_stored(version, change.after) == change.after != change.before


def test_each_property_gets_valid_and_nearly_valid_changes() -> None:
    judged = {(each.path, each.is_valid) for each in found()}
    for path in ("spec.replicas", "spec.version", "spec.minimum", "spec.ports", "spec.ports[0].port", "spec.zones"):
        assert {(path, True), (path, False)} <= judged


def test_each_refusal_has_its_own_reason() -> None:
    reasons = Counter((each.path, each.errors[0].message) for each in found() if not each.is_valid)
    assert max(reasons.values()) == 1
    messages = [each.errors[0].message for each in found() if each.path == "spec.replicas" and not each.is_valid]
    assert any("greater than or equal to 1" in each for each in messages)
    assert any("less than or equal to 9" in each for each in messages)


def test_rules_refuse_nearly_valid_changes() -> None:
    messages = {each.errors[0].message for each in found() if not each.is_valid}
    assert any("self.minimum <= self.maximum" in each for each in messages)
    assert any("self.mode != 'large'" in each for each in messages)


def test_a_change_that_rules_forbid_to_undo_has_no_way_back() -> None:
    ways = {each.path: each.has_way_back for each in found() if each.is_valid}
    assert not ways["spec.storageClass"]
    assert ways["spec.replicas"]


def test_an_immutable_field_is_not_changed() -> None:
    definition, version = kind_of(SPEC)
    first = first_state(definition, version, Random(1))
    first["spec"]["storageClass"] = "fast"
    judged = [each for each in changes(version, first, Random(1)) if each.path == "spec.storageClass"]
    assert judged
    assert not [each for each in judged if each.is_valid]
