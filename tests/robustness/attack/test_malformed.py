"""Tests of requests that cannot be decoded: each is refused with a message, and none of them causes
an internal error.
"""

from __future__ import annotations

import gzip
import json
from base64 import urlsafe_b64encode
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctrlmgr.engine.paging import decode_continue
from ctrlmgr.errors import ApiError, BadRequest, RecordingError
from ctrlmgr.inspection.differences import ABSENT, differences
from ctrlmgr.recording.format import LAST_REVISION, RecordingReader
from ctrlmgr.recording.line_reader import LONGEST
from ctrlmgr.schema.protobuf import message
from ctrlmgr.ui.parameters import Parameters
from tests.engine.stage import Stage
from tests.robustness.attack.growth import WORST, growth

PODS = "/api/v1/namespaces/n/configmaps"


@pytest.fixture(scope="module")
def stage() -> Stage:
    made = Stage()
    assert made.namespace("n").code == 201
    assert made.send("POST", PODS, {"metadata": {"name": "c"}, "data": {"a": "b"}}).code == 201
    return made


def token(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "given",
    [
        "eyJ2Ijoi_yJ9",
        token(b"\xff"),
        token(b"[" * 5000),
        token(b'{"v":"meta.k8s.io/v1","rv":99999999999999999999,"start":"a"}'),
        token(b'{"v":"meta.k8s.io/v1","rv":1,"start":"../../etc"}'),
        "é",
        "=",
        "\x00",
    ],
)
def test_an_invalid_continue_token_is_a_bad_request(given: str, stage: Stage) -> None:
    with pytest.raises(BadRequest):
        decode_continue(given)
    assert stage.send("GET", PODS, query={"continue": given, "limit": "1"}).code == 400


@pytest.mark.parametrize("raw", [b"\xff", b'"\xff"', b"[" * 100_000, b"{", b'{"a":"\xff"}'])
def test_invalid_json_in_protobuf_is_a_bad_request(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        message._json(raw, 0, len(raw), 0)


@pytest.mark.parametrize("depth", [500, 3000])
def test_patch_operations_cannot_exceed_the_maximum_depth(depth: int, stage: Stage) -> None:
    operations: list[dict[str, Any]] = [{"op": "add", "path": "/x", "value": {}}]
    for _ in range(depth):
        operations += [{"op": "add", "path": "/y", "value": {}}, {"op": "move", "from": "/x", "path": "/y/x"}]
        operations.append({"op": "move", "from": "/y", "path": "/x"})
    answer = stage.send("PATCH", f"{PODS}/c", operations, media_type="application/json-patch+json")
    assert answer.code in (200, 400, 413, 422)


@pytest.mark.parametrize("value", ["9" * 400, "-" + "9" * 400, "9" * 1025, "a\x00b", "٣"])
def test_an_invalid_number_of_the_page_is_a_bad_request(value: str) -> None:
    with pytest.raises(BadRequest):
        Parameters({"at": [value]}).number("at")


def test_a_text_with_a_nul_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="NUL"):
        Parameters({"name": ["a\x00"]}).text("name")


def changed(count: int) -> tuple[list[str], list[str]]:
    random = Random(count)
    return [str(random.randrange(9)) for _ in range(count)], [str(random.randrange(9)) for _ in range(count)]


@pytest.mark.parametrize("named", [False, True])
def test_the_difference_of_long_lists_takes_linear_time(named: bool) -> None:
    def make(count: int) -> tuple[list[Any], list[Any]]:
        if not named:
            return changed(count)
        return [{"name": f"a{at}"} for at in range(count)], [{"name": f"a{at}", "x": 1} for at in range(count)]

    assert growth(make, lambda pair: list(differences(*pair)), 500) <= WORST


@pytest.mark.parametrize("size", [0, 1, 5, 90, 300])
def test_the_difference_of_long_lists_is_complete(size: int) -> None:
    before, after = changed(size)
    after = before[: size // 3] + after[size // 3 :] + ["last"]
    shown = list(differences(before, after))
    assert (not shown) == (before == after)
    gone = Counter(each.before for each in shown if each.before is not ABSENT)
    come = Counter(each.after for each in shown if each.after is not ABSENT)
    assert Counter(before) - gone == Counter(after) - come


# Recordings.


def line(revision: Any, **more: Any) -> bytes:
    metadata = {"name": "a", "uid": "u", "resourceVersion": revision}
    fields = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, **more}
    return json.dumps({"type": "ADDED", "object": fields}).encode()


def bookmark(revision: Any) -> bytes:
    metadata = {"resourceVersion": revision}
    return json.dumps({"type": "BOOKMARK", "object": {"kind": "Checkpoint", "metadata": metadata}}).encode()


ODD = [
    "9" * 5000,
    str(1 << 63),
    str((1 << 63) - 1),
    str(LAST_REVISION + 1),
    "-1",
    "0",
    "x",
    "",
    "1.0",
    1,
    None,
    [],
    {},
    True,
]


@pytest.mark.parametrize("revision", ODD)
@pytest.mark.parametrize("make", [line, bookmark])
def test_a_revision_at_the_maximum_is_refused(revision: Any, make: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(make(revision) + b"\n")
    with pytest.raises(RecordingError):
        list(RecordingReader(path))


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"1",
        b"null",
        b'{"type":1,"object":{}}',
        b'{"type":"ADDED","object":[]}',
        b'{"type":"ADDED","object":null}',
        b'{"type":"ADDED","object":{"kind":1,"apiVersion":[],"metadata":{}}}',
        b'{"type":"ADDED","object":{"kind":"A","apiVersion":"v1","metadata":[]}}',
        b'{"type":"ADDED","object":' + b"[" * 100_000,
        b'{"type":"ADDED","recordedAt":5,"object":{}}',
        line("1").replace(b'"ADDED"', b'"ADDED","recordedAt":"' + b"9" * 5000 + b'"'),
        b"\xff\xfe",
    ],
)
def test_an_invalid_event_line_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(data + b"\n")
    with pytest.raises(RecordingError):
        list(RecordingReader(path))


def test_a_compressed_recording_is_not_expanded_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * (8 * LONGEST), 9))
    assert path.stat().st_size < LONGEST // 50
    with pytest.raises(RecordingError, match="the line is longer than"):
        list(RecordingReader(path))


def test_errors_of_the_engine_become_statuses(stage: Stage) -> None:
    answer = stage.send("POST", PODS, b"\xff")
    assert answer.code == 400
    assert issubclass(BadRequest, ApiError)
