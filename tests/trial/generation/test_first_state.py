"""A valid object is found, also if rules refuse the smallest object."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.extensions.definition import parse
from ctrlmgr.trial.generation.first_state import NoFirstState, first_state
from ctrlmgr.trial.generation.judged_changes import errors_of
from tests.extensions import operators
from tests.trial.generation.kinds import SPEC, kind_of


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1_000))
def test_the_first_state_is_valid_and_has_its_defaults(seed: int) -> None:
    definition, version = kind_of(SPEC)
    fields = first_state(definition, version, Random(seed))
    assert errors_of(version, fields) == ()
    assert fields["spec"]["mode"] == "small"
    assert fields["apiVersion"] == "example.com/v1"
    assert fields["metadata"] == {"name": "sample", "namespace": "default"}


@pytest.mark.parametrize(
    "rule",
    [
        "has(self.a) && self.a == 'exactly-this'",
        "has(self.a) && has(self.b) && self.b > 41 && size(self.a) > 5",
        "has(self.b) != has(self.a)",
    ],
)
def test_rules_that_refuse_the_smallest_object(rule: str) -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    definition, version = kind_of({**spec, "x-kubernetes-validations": [{"rule": rule}]})
    assert errors_of(version, first_state(definition, version, Random(1))) == ()


def test_an_example_of_the_schema_is_preferred() -> None:
    definition, version = kind_of(SPEC, example={"spec": {"replicas": 4, "size": "1Gi", "version": "1.2.3"}})
    assert first_state(definition, version, Random(1))["spec"]["version"] == "1.2.3"


def test_a_schema_without_valid_objects() -> None:
    spec = {"type": "object", "x-kubernetes-validations": [{"rule": "1 > 2"}]}
    definition, version = kind_of(spec, required=["spec"])
    with pytest.raises(NoFirstState, match=r"no valid object of widgets\.example\.com was found; the last attempt"):
        first_state(definition, version, Random(1))


@pytest.mark.parametrize("kind", operators.DEFINITIONS)
def test_large_definitions_like_those_of_known_operators(kind: str) -> None:
    definition = parse(operators.a_definition(kind, operators.DEFINITIONS[kind]()))
    assert errors_of(definition.storage, first_state(definition, definition.storage, Random(1))) == ()
