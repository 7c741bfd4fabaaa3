"""Tests of hostile request bodies: each gets the documented response, as a Status, and without delay."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.robustness.conftest import HOSTILE
from tests.robustness.hostile.raw import ask, exchange, head
from tests.robustness.serving import ConfiguredServer
from tests.robustness.statuses import is_status

MAPS = f"/api/v1/namespaces/{HOSTILE}/configmaps"
LIMIT = 3 * 1024 * 1024
_numbers = itertools.count(1)


def fresh() -> str:
    return f"m-{next(_numbers)}"


class Case(NamedTuple):
    name: str
    body: bytes
    code: int
    words: str = ""
    """The part of the error message that the test expects."""


def config_map(metadata: bytes = b"", rest: bytes = b"") -> bytes:
    """Return a ConfigMap with a string in a form that Python's JSON encoder would not write."""
    return b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%b"%b}%b}' % (fresh().encode(), metadata, rest)


def nested(depth: int) -> bytes:
    return config_map(b',"annotations":' + b'{"a":' * depth + b"1" + b"}" * depth)


def labelled(value: bytes) -> bytes:
    return config_map(b',"labels":{"a":"%b"}' % value)


def annotated(value: bytes) -> bytes:
    return config_map(b',"annotations":{"a":"%b"}' % value)


BODIES = [
    Case("malformed", b'{"kind":', 400, "unexpected end of JSON input"),
    Case("no JSON at all", b"kind", 400, "invalid character"),
    Case("empty", b"", 400),
    Case("blank", b" \n ", 400),
    Case("trailing garbage", config_map() + b"x", 400, "after top-level value"),
    Case("two documents", config_map() * 2, 400, "after top-level value"),
    Case("NaN", config_map(rest=b',"data":{"a":NaN}'), 400, "invalid character"),
    Case("Infinity", config_map(rest=b',"data":{"a":-Infinity}'), 400, "invalid"),
    Case("a number beyond all", config_map(b',"generation":1e999'), 400),
    Case("a number of 5000 digits", config_map(b',"generation":' + b"9" * 5000), 400),
    Case("100,000 levels", nested(100_000), 400, "depth"),
    Case("100,000 lists", config_map(rest=b',"data":' + b"[" * 100_000), 400),
    Case("invalid UTF-8 in a label", labelled(b"\xff\xfe"), 400, "UTF-8"),
    Case("invalid UTF-8 in an annotation", annotated(b"a\xc3"), 400, "UTF-8"),
    Case("an overlong encoding", annotated(b"\xc0\x80"), 400, "UTF-8"),
    Case("a surrogate in UTF-8", annotated(b"\xed\xa0\x80"), 400, "UTF-8"),
    Case("a lone surrogate", annotated(rb"\ud800"), 400),
    Case("an escaped NUL", annotated(rb"\u0000"), 400),
    Case("a raw NUL", annotated(b"\x00"), 400),
    Case("a byte order mark", b"\xef\xbb\xbf" + config_map(), 400),
    Case("UTF-16", config_map().decode().encode("utf-16"), 400),
    Case("a list where an object belongs", b"[1]", 400),
    Case("a text where an object belongs", b'"x"', 400),
    Case("null", b"null", 422, "name or generateName is required"),
    Case("a text where a map belongs", config_map(rest=b',"data":"x"'), 400),
    Case("a number where a text belongs", config_map(rest=b',"data":{"a":1}'), 400),
    Case("another kind", b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}', 400),
    Case("a kind that is none", b'{"kind":{"a":1},"apiVersion":"v1"}', 400),
    Case("a label of 64", labelled(b"a" * 64), 422, "must be no more than 63 "),
    Case("a name of 254", config_map().replace(b'"m-', b'"' + b"m" * 254 + b"-"), 422, "must be no more than 253 "),
    Case("a name that climbs", b'{"kind":"ConfigMap","metadata":{"name":"../x"}}', 422, "metadata.name"),
    Case("a name that is a program", b'{"metadata":{"name":"a\';drop table event;--"}}', 422, "metadata.name"),
    Case("annotations of 300 KB", annotated(b"a" * 300_000), 422, "annotations: Too long"),
    Case("data beyond a megabyte", config_map(rest=b',"data":{"a":"%b"}' % (b"a" * ((1 << 20) + 1))), 422, "Too long"),
    Case("another namespace", config_map(b',"namespace":"default"'), 400, "does not match"),
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in BODIES])
def test_malformed_bodies_are_refused(target: ConfiguredServer, case: Case) -> None:
    reply = ask(target.site, "POST", MAPS, case.body)
    assert (reply.code, is_status(reply)) == (case.code, True), reply
    assert case.words in reply.fields["message"]


def repeated() -> bytes:
    return config_map(rest=b',"data":{"a":"first","a":"last"}')


def test_the_last_of_duplicate_keys_counts_and_causes_a_warning(target: ConfiguredServer) -> None:
    warned = ask(target.site, "POST", MAPS, repeated())
    assert (warned.code, warned.fields["data"]) == (201, {"a": "last"})
    assert 'duplicate field "data.a"' in warned.headers["warning"].replace("\\", "")
    strict = ask(target.site, "POST", f"{MAPS}?fieldValidation=Strict", repeated())
    assert (strict.code, is_status(strict)) == (400, True)
    assert 'duplicate field "data.a"' in strict.fields["message"]
    silent = ask(target.site, "POST", f"{MAPS}?fieldValidation=Ignore", repeated())
    assert (silent.code, "warning" in silent.headers) == (201, False)


def chunks(total: int, size: int = 65_536) -> Iterator[bytes]:
    for _ in range(total // size):
        yield b"%x\r\n%b\r\n" % (size, b" " * size)
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_large_bodies_are_refused_in_every_encoding(target: ConfiguredServer, method: str) -> None:
    path = MAPS if method == "POST" else f"{MAPS}/large"
    types = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    told = exchange(target.site, [head(target.site, method, path, {"content-length": str(LIMIT + 1), **types})])
    chunked = {"transfer-encoding": "chunked", **types}
    shown = exchange(target.site, [head(target.site, method, path, chunked), *chunks(LIMIT + 131_072)])
    for reply in (told, shown):
        assert (reply.code, is_status(reply)) == (413, True), reply
        assert reply.fields["message"] == f"Request entity is too large: limit is {LIMIT}"


def test_an_excessive_content_length_is_refused_at_once(target: ConfiguredServer) -> None:
    for length in (str(1 << 40), "9" * 18):
        reply = exchange(target.site, [head(target.site, "POST", MAPS, {"content-length": length})])
        assert (reply.code, is_status(reply)) == (413, True)


def test_a_body_of_exactly_the_limit_is_read(target: ConfiguredServer) -> None:
    small = config_map()
    reply = ask(target.site, "POST", MAPS, small + b" " * (LIMIT - len(small)))
    assert reply.code == 201


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br", "identity, gzip"])
def test_compressed_bodies_are_refused(target: ConfiguredServer, encoding: str) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    reply = ask(target.site, "POST", MAPS, bomb, {"content-encoding": encoding})
    assert (reply.code, is_status(reply)) == (415, True)


PATCHES = [
    ("10,001 operations", "json-patch", [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001, 413),
    ("no list", "json-patch", {"op": "add"}, 400),
    ("no operation", "json-patch", [{"op": "eval", "path": "/data"}], 422),
    ("a path to nowhere", "json-patch", [{"op": "remove", "path": "/data/none"}], 422),
    ("an index beyond all", "json-patch", [{"op": "add", "path": "/metadata/finalizers/9999999999", "value": 1}], 422),
    ("a list in the object's place", "json-patch", [{"op": "replace", "path": "", "value": [{}]}], 422),
    ("a copy of itself, again and again", "json-patch", None, 422),
    ("a text", "merge-patch", "x", 400),
    ("a patch of many levels", "merge-patch", {"data": {"a": {"b": {}}}}, 422),
    ("a directive that is none, at which Kubernetes fails", "strategic-merge-patch", {"$patch": "explode"}, 500),
]


def amplified() -> list[dict[str, Any]]:
    """Return JSON patch operations that double a value twenty times."""
    doubled = [
        {"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/a{n}"} for n in range(40)
    ]
    return [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}, *doubled]


@pytest.mark.parametrize(("kind", "patch", "code"), [pytest.param(*case[1:], id=case[0]) for case in PATCHES])
def test_invalid_patches_are_refused(target: ConfiguredServer, kind: str, patch: Any, code: int) -> None:
    name = fresh()
    assert ask(target.site, "POST", MAPS, json.dumps({"metadata": {"name": name}}).encode()).code == 201
    body = json.dumps(amplified() if patch is None else patch).encode()
    reply = ask(target.site, "PATCH", f"{MAPS}/{name}", body, {"content-type": f"application/{kind}+json"})
    assert (reply.code, is_status(reply)) == (code, True), reply
