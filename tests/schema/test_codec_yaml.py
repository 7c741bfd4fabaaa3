"""Tests that YAML bodies are decoded as in Kubernetes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from ctrlmgr.errors import BadRequest
from ctrlmgr.schema import yaml_document
from ctrlmgr.schema.codec import YAML
from ctrlmgr.schema.definitions import Definitions

CONFIG_MAPS = Definitions.builtin().codec("ConfigMap", "v1", "io.k8s.api.core.v1.ConfigMap")


def test_a_yaml_body_is_decoded() -> None:
    body = b"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: from-yaml
  labels: &labels {a: "1"}
  annotations: *labels
data:
  text: |
    two
    lines
---
kind: Ignored
"""
    fields, problems = CONFIG_MAPS.decode(body, YAML)
    assert fields["metadata"] == {"name": "from-yaml", "labels": {"a": "1"}, "annotations": {"a": "1"}}
    assert fields["data"] == {"text": "two\nlines\n"}
    assert problems == ()


def test_problems() -> None:
    _, problems = CONFIG_MAPS.decode(b"metadata:\n  name: a\n  name: b\nbogus: 1\n", YAML)
    assert problems == (
        'yaml: unmarshal errors:\n  line 3: key "name" already set in map',
        'unknown field "bogus"',
    )


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *[(word, True) for word in ("y", "Y", "yes", "Yes", "on", "ON", "true", "True")],
        *[(word, False) for word in ("n", "no", "off", "FALSE")],
        *[(word, None) for word in ("", "~", "null", "Null", "!!null null")],
        ("tRue", "tRue"),
        ("017", 15),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("+1", 1),
        ("1e3", 1000),
        ("3.0", 3),
        (".5", 0.5),
        ("1e30", 1e30),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 18446744073709551616),
        ("2e21", 2e21),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("1.2.3", "1.2.3"),
        ("08", 8),
        ("'1'", "1"),
        ('"\\u00e9"', "é"),
        ("!!str 1", "1"),
        ('!!int "3"', 3),
        ("!!float 3", 3),
        ("!!binary aGk=", "hi"),
        ("!custom 1", "1"),
        ("!!python/object/apply:os.getcwd []", []),
        ("0xfffffffffffffffff", "0xfffffffffffffffff"),
        ("!!timestamp 2026-01-02", "2026-01-02"),
        ("[1, [a]]", [1, ["a"]]),
        ("{b: 1, a: }", {"b": 1, "a": None}),
        ("{1: a, true: b, 1.5: c}", {"1": "a", "true": "b", "1.5": "c"}),
        ("{<<: {a: 1, b: 2}, a: 3}", {"a": 3, "b": 2}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}),
        ("{'<<': 1}", {"<<": 1}),
    ],
)
def test_plain_scalars_have_types(word: str, value: Any) -> None:
    decoded, repeated = yaml_document.decode(f"a: {word}\n".encode())
    assert decoded == {"a": value}
    assert type(decoded["a"]) is type(value)
    assert repeated == ()


@pytest.mark.parametrize(("data", "value"), [(b"", None), (b"# nothing", None), (b"--- a\n--- b\n", "a"), (b"[]", [])])
def test_documents(data: bytes, value: Any) -> None:
    assert yaml_document.decode(data) == (value, ())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a: [", "yaml: line 2: did not find expected node content"),
        (b"a: 1\nb", "could not find expected ':'"),
        (b"\xff", "invalid leading UTF-8 octet"),
        (b"a: .inf", "unsupported value"),
        (b"a: -.NaN", "unsupported value"),
        (b"a: 1e999", "unsupported value"),
        (b'a: "\\0"', "control characters"),
        (b'a: "\\ud800"', "invalid Unicode"),
        (b"a: *b", "unknown anchor 'b'"),
        (b"&a [*a]", "unknown anchor 'a'"),
        (b"? [a]\n: b", "unsupported map key"),
        (b"a: !!bool x", "cannot decode `x` as a !!bool"),
        (b"a: !!binary '%'", "invalid base64 data"),
        (b"<<: 1", "map merge requires map"),
        (b"[" * 65 + b"]" * 65, "exceeded max depth"),
    ],
)
def test_invalid_yaml_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        yaml_document.decode(data)
    assert reason in str(caught.value)
    with pytest.raises(BadRequest, match="the object provided is unrecognized"):
        CONFIG_MAPS.decode(data, YAML)


def test_aliases_cannot_expand_a_document() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 9)]
    with pytest.raises(ValueError, match="excessive aliasing"):
        yaml_document.decode("\n".join(lines).encode())


ODD = (
    *("a", "y", "no", "null", "~", "1", "0x1", "017", "1.5", "1e3", "2001-01-01", "<<", "*a", "&a", "- b", "? c"),
    *("a: b", "# x", "{", "[", ",", "%", "@", "`", "|", ">", "", " ", ".inf", "---", "a" * 1100, "é", "\u2028", "\x7f"),
    *("\\", '"', "\t", "\n", "/", "<"),
)
NUMBERS = (0, -1, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**17, 10**18, 10**19, 1.5, 1e3, 1e22, -0.0)


def _some(random: Random, depth: int = 0) -> Any:
    kind = random.randrange(3 if depth > 4 else 5)
    if kind == 0:
        return random.choice((*NUMBERS, True, False, None))
    if kind < 3:
        return random.choice(ODD)
    if kind == 3:
        return [_some(random, depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(ODD): _some(random, depth + 1) for _ in range(random.randrange(4))}


@pytest.mark.parametrize("seed", range(4))
def test_json_parsed_directly_equals_json_parsed_as_yaml(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, quick = Random(seed), 0
    for _ in range(1000):
        fields = {"k": _some(random), random.choice(ODD): _some(random)}
        data = json.dumps(fields, separators=(",", ":"), ensure_ascii=random.random() < 0.3).encode()
        taken = yaml_document._plain_json(data)
        if taken is None:
            continue
        quick += 1
        with monkeypatch.context() as patched:
            patched.setattr(yaml_document, "_plain_json", lambda data: None)
            value, repeated = yaml_document.decode(data)
        assert repr(taken) == repr(value)
        assert not repeated
    assert quick > 100
