"""Tests of JSON that is converted to YAML: the clients' parser decodes the result, and the work is measured in function
calls.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import yaml

from ctrlmgr.server.presenting.yaml_text import to_yaml
from tests.calls import calls

_PIECES = (*"aZ09 :-#,[]{}&*!|>'\"%@`?=~_./\\\n\t", "\x7f", "\x85", "é", "\u2028", "\ufeff", "\U0001f600", "\u0001")
_TEXTS = (
    *("", "a", "true", "True", "NO", "y", "On", "null", "Null", "~", "a: b", "a:b", "a:", "a #b", "- a", "-", "--- a"),
    *("1", "1.5", "0x1f", "0o7", "1e3", "12:30:45", "2026-01-01", "2026-01-01T00:00:00Z", ".inf", ".nan", "<<", "="),
    *("a\nb\n", "a ", " a", "nginx:1.2", "a/b", "k8s.gcr.io/x@sha256:ab", "_1", "_", "...", "%a", "\n", "1_000", "+1"),
)


@pytest.mark.parametrize("text", _TEXTS)
def test_strings_survive_a_round_trip_as_values_and_as_keys(text: str) -> None:
    value = {text: [text, {text: text}]}
    assert yaml.safe_load(to_yaml(json.dumps(value).encode())) == value


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        None,
        True,
        0,
        -1,
        2**70,
        0.5,
        1e300,
        1e-7,
        -2.5e-300,
        {"a": []},
        [[]],
        [[1], [[2]]],
        {"x" * 2_000: {"a": 1}},
    ],
)
def test_values_survive_a_round_trip(value: Any) -> None:
    assert yaml.safe_load(to_yaml(json.dumps(value).encode())) == value
    assert yaml.safe_load(to_yaml(json.dumps({"a": [value, value]}).encode())) == {"a": [value, value]}


@pytest.mark.parametrize("seed", range(40))
def test_any_document_survives_a_round_trip(seed: int) -> None:
    value = _any(random.Random(seed), 5)
    assert yaml.safe_load(to_yaml(json.dumps(value, ensure_ascii=seed % 2 == 0).encode())) == value


def _any(choice: random.Random, depth: int) -> Any:
    kind = choice.randrange(6 if depth else 3)
    text = "".join(choice.choices(_PIECES, k=choice.randrange(12)))
    if kind < 3:
        return (text, choice.choice((choice.random(), choice.randrange(10**9))), choice.choice((True, False, None)))[
            kind
        ]
    if kind == 3:
        return [_any(choice, depth - 1) for _ in range(choice.randrange(6))]
    return {f"{text}{at}": _any(choice, depth - 1) for at in range(choice.randrange(6))}


def test_yaml_is_formatted_like_kubernetes() -> None:
    pod = {
        "metadata": {"name": "a", "labels": {"b": "1"}},
        "kind": "Pod",
        "spec": {"containers": [{"name": "c", "args": ["-v", "x"], "env": []}]},
    }
    assert to_yaml(json.dumps(pod).encode()).decode() == (
        'kind: Pod\nmetadata:\n  labels:\n    b: "1"\n  name: a\n'
        'spec:\n  containers:\n  - args:\n    - "-v"\n    - x\n    env: []\n    name: c\n'
    )


def test_a_value_costs_a_few_calls() -> None:
    values = 20_000
    dense = json.dumps([{"a": "b", "c": 1}] * (values // 2)).encode()
    assert calls(lambda: to_yaml(dense)) <= 8 * values
