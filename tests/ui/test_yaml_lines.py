"""Tests of objects as lines of YAML: the lines can be parsed into the object, and the field of each line is known."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.differences import content
from ctrlmgr.inspection.field_authors import blame
from ctrlmgr.inspection.historical_state import Author, Change
from ctrlmgr.ui.yaml_lines import lines

TEXTS = st.text(alphabet="ab1 :\n-#\"'|>{}[],&*!%@`~.\t\r\0\x85\u2028\ufeffé=/?", max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def text(value: dict[str, Any]) -> str:
    return "".join("  " * line.depth + line.text + "\n" for line in lines(value))


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_lines_are_yaml_of_the_object(value: dict[str, Any]) -> None:
    assert (yaml.safe_load(text(value)) or {}) == value


def test_every_blamed_field_has_a_line() -> None:
    fields = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"a.b/c": "on"}, "finalizers": ["one", "two"]},
        "spec": {"containers": [{"name": "web", "args": [["-c", 1]], "env": []}], "note": "two\nlines\n"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    obj = Object.from_dict(fields)
    author = Author("alice", "kubectl", 0, 0, "", "", 0)
    changes = [Change(1, EventType.ADDED, 0, author, obj, None)]
    known = {line.path for line in lines(content(obj)) if line.path}
    assert known == {each.path for each in blame(changes)}


def test_the_layout_of_yaml_lines() -> None:
    value = {"data": {"a.b": "x: y", "off": "no", "n": "12", "t": "one\ntwo"}, "items": [{"name": "a", "l": [1, {}]}]}
    assert text(value) == (
        "data:\n"
        '  a.b: "x: y"\n'
        '  "off": "no"\n'
        '  "n": "12"\n'
        "  t: |-\n"
        "    one\n"
        "    two\n"
        "items:\n"
        "- name: a\n"
        "  l:\n"
        "  - 1\n"
        "  - {}\n"
    )
