"""Tests that the input generators produce each weakness that was found in the past."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice

import pytest

from ctrlmgr.http.http2 import frames
from tests.robustness.attack.callers import CALLERS
from tests.robustness.attack.connections import HTTP1, HTTP2
from tests.robustness.attack.inputs import CERTIFICATES, Input, Inputs
from tests.robustness.attack.server_attack import REQUEST_BODIES
from tests.robustness.attack.wire import forged

MADE = 6_000

FLIPPED = frames.settings({frames.Setting.INITIAL_WINDOW_SIZE: 0})


def counts(piece: bytes, least: int) -> Callable[[Input], bool]:
    """Return whether an input contains a string at least this number of times."""
    return lambda given: given.body.count(piece) >= least


def asks(piece: str, least: int = 1) -> Callable[[Input], bool]:
    """Return whether the path of an input contains a string at least this number of times."""
    return lambda given: given.path.count(piece) >= least


WEAKNESSES: dict[str, Callable[[Input], bool]] = {
    "certificates that each sign each": lambda given: (
        given.is_a == CERTIFICATES and given.body == b'{"shape": "self-issued", "count": 12}'
    ),
    "empty containers": counts(b"{}, {}, {}", 300),
    "empty containers in protobuf": counts(b"\x12\0" * 500, 1),
    "empty owners": lambda given: b"ownerReferences" in given.body and given.body.count(b"{}") >= 300,
    "requirements of two bytes": lambda given: given.family == "reviews" and given.body.count(b"\x12\0") >= 1_000,
    "a body that stalls": lambda given: not given.stays,
    "a!= many times": asks("a%21%3D", 400),
    "copies of all into itself": counts(b'"op":"copy","from":"/data"', 10),
    "room byte by byte": counts(frames.window_update(0, 1), 500),
    "settings that flip": counts(FLIPPED, 50),
    "held heads": lambda given: given.shape == "held heads" and len(given.body) > 900_000,
    "sets": lambda given: given.shape == "sets" and given.size > 2_000,
    "distinct": lambda given: given.shape == "distinct" and given.size > 2_000,
    "findAll": lambda given: given.shape == "find" and given.size > 2_000,
    "a steep pattern": counts(b"(a|b)*a(a|b){999}$", 1),
    "a long text for a steep pattern": lambda given: given.family == "patterns" and given.size > 10_000,
    "wrong values of an enumeration": counts(b"-1, ", 2_000),
    "alternatives of many items": counts(b"19, 20", 1_000),
    "nested defaults": lambda given: given.shape == "defaulted" and given.body.count(b"{}") > 200,
    "a schema that nests defaults": lambda given: given.shape == "deep" and given.body.count(b'"default"') > 200,
    "a change that is hidden": asks("/ui/api/change?revision="),
    "the log of secrets": asks("/ui/api/log?resource=secrets"),
    "a query of escapes": counts(b"%41", 3_000),
    "rapid reset": lambda given: (
        given.shape == "rapid reset" and given.body.count(frames.reset(1, frames.Code(0))) == 1
    ),
    "resets by the server": lambda given: given.shape == "resets by the server" and len(given.body) > 9_000,
    "streams beyond the limit": lambda given: given.shape == "more streams than may be" and len(given.body) > 9_000,
    "heads of 990 fields": counts(b"\x90" * 980, 1),
    "an answer in YAML": lambda given: given.headers.get("accept") == "application/yaml",
    "except": counts(b".0/24", 500),
    "crons": lambda given: given.shape == "crons" and given.body.count(b",") > 500,
    "ports": counts(b'{"port":', 500),
    "anchors": counts(b"*a\n", 100),
    "an authority with control characters": counts(b"a\x01b", 1),
    "a first frame that is not settings": lambda given: given.body.startswith(frames.PREFACE + b"\0\0\x08\x06"),
    "a bad value repeated": counts(b"\0\2\0\0\0\2\0\2\0\0\0\1", 1),
    "a coded body": counts(b"transfer-encoding: gzip, chunked", 1),
    "a host with a space": counts(b"host: a b\r\n", 1),
}


@cache
def made() -> tuple[Input, ...]:
    return tuple(islice(Inputs(REQUEST_BODIES, 1), MADE))


@pytest.mark.parametrize("name", WEAKNESSES)
def test_a_weakness_is_reached(name: str) -> None:
    assert any(map(WEAKNESSES[name], made()))


def test_every_caller_and_every_route_is_included() -> None:
    assert {each.caller for each in made()} == set(CALLERS)
    shapes = {each.shape for each in made()}
    assert {each.name for each in (*HTTP1, *HTTP2)} <= shapes


def test_forged_certificates_have_their_declared_number() -> None:
    for shape in ("self-issued", "chain", "circle", "copies"):
        assert len(forged(shape, 5)) == 6
    assert len({each.certificate.subject for each in forged("self-issued", 5)[1:]}) == 1
