"""Tests of the escaped form in CEL of field names that are not identifiers."""

from __future__ import annotations

import pytest

from ctrlmgr.expressions import types
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.environment import LIBRARIES, Environment
from ctrlmgr.expressions.escapes import escaped, unescaped

NAMES = [
    ("plain", "plain"),
    ("a.b", "a__dot__b"),
    ("a-b/c", "a__dash__b__slash__c"),
    ("a__b", "a__underscores__b"),
    ("namespace", "__namespace__"),
    ("__x", "__underscores__x"),
]


@pytest.mark.parametrize(("name", "written"), NAMES)
def test_an_escaped_name_is_unescaped_to_the_same(name: str, written: str) -> None:
    assert escaped(name) == written
    assert unescaped(written) == name


@pytest.mark.parametrize("written", ["a__b__c", "a__namespace__", "__dots__", "a__dot__b__other__c", "a_b", ""])
def test_an_invalid_escape_stands_for_itself(written: str) -> None:
    assert unescaped(written) == written


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("object.a__dot__b", 1),
        ("has(object.a__dot__b)", True),
        ("object.?a__dot__b.orValue(2)", 1),
        ("object['a.b']", 1),
        ("object['a__dot__b']", 1),
        ("object[?'a__dot__b'].orValue(2)", 1),
        ("object.inner.__namespace__", "n"),
        ("[object].exists(each, each.a__dot__b == 1)", True),
        ("'a__dot__b' in object", False),
    ],
)
def test_escapes_are_read_in_objects_as_sent(source: str, value: object) -> None:
    environment = Environment({"object": types.DYN}, Functions(LIBRARIES), unescapes=True)
    variables = {"object": {"a.b": 1, "inner": {"namespace": "n"}}}
    assert environment.compile(source).evaluate(variables)[0] == value
    plain = Environment({"object": types.DYN}, Functions(LIBRARIES))
    assert plain.compile("has(object.a__dot__b)").evaluate(variables)[0] is False
