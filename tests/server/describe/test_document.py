from __future__ import annotations

import gzip
import json
import re

import pytest

from ctrlmgr import __version__
from ctrlmgr.server.describe.document import Clause, choose, document, json_document, preferred
from ctrlmgr.server.describe.version_info import version_document, version_info


def test_a_document_is_compressed_if_that_saves_bytes() -> None:
    small, large = document("text/plain", b"small"), document("text/plain", b"large" * 1000)
    assert small.gzipped is None
    assert large.gzipped is not None
    assert len(large.gzipped) < 100
    assert gzip.decompress(large.gzipped) == large.body


def test_a_document_has_equal_bytes_every_time() -> None:
    assert document("text/plain", b"large" * 1000) == document("text/plain", b"large" * 1000)


def test_the_etag_is_quoted_and_depends_on_the_content() -> None:
    one, other = json_document({"a": 1}), json_document({"a": 2})
    assert (one.body, one.content_type) == (b'{"a":1}\n', "application/json")
    assert re.fullmatch(r'"[0-9A-F]{64}"', one.etag)
    assert one.digest == one.etag[1:-1] != other.digest


@pytest.mark.parametrize(
    ("accept", "types"),
    [
        pytest.param("", ["*/*"], id="no header accepts everything"),
        pytest.param("a/b, c/d", ["a/b", "c/d"], id="in order"),
        pytest.param("a/b;q=0.1, c/d;q=0.9, e/f", ["e/f", "c/d", "a/b"], id="by quality"),
        pytest.param("*/*, a/*, a/b", ["a/b", "a/*", "*/*"], id="stars last"),
        pytest.param("a/b;q=much, ,c/d", ["a/b", "c/d"], id="nonsense is no quality"),
        pytest.param("A/B", ["a/b"], id="in any case"),
    ],
)
def test_the_order_of_preference(accept: str, types: list[str]) -> None:
    assert [clause.media_type for clause in preferred(accept)] == types


def test_parameters_are_read() -> None:
    assert preferred('a/b; V=v2 ;as="Table";q=0.5') == [Clause("a/b", {"v": "v2", "as": "Table"}, 0.5)]


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("a/json", "a/json"),
        ("a/pb, a/json", "a/pb"),
        ("a/*", "a/json"),
        ("*/*;q=0.1, a/pb;q=0.01", "a/json"),
        ("text/html", None),
        ("text/html, */*", "a/json"),
    ],
)
def test_the_best_supported_format_is_chosen(accept: str, chosen: str | None) -> None:
    assert choose(accept, ["a/json", "a/pb"]) == chosen


def test_the_version_is_the_emulated_kubernetes() -> None:
    body = version_document().body
    info = json.loads(body)
    assert info == version_info()
    assert body.startswith(b'{\n  "major": "1",\n')  # in Kubernetes' readable form
    assert info["gitVersion"] == f"v1.36.2+ctrlmgr.{__version__}"
    assert (info["major"], info["minor"], info["minCompatibilityMinor"]) == ("1", "36", "35")
    assert re.fullmatch(r"[a-z]+/[a-z0-9_]+", info["platform"])


def test_the_version_has_every_field_that_clients_require() -> None:
    fields = {
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    }
    more = {f"{what}{part}" for what in ("emulation", "minCompatibility") for part in ("Major", "Minor")}
    assert set(version_info()) == fields | more


def test_the_version_is_a_semantic_version() -> None:
    """The version has the form that apimachinery's ParseSemantic accepts: three numbers, and build metadata of dotted
    words after a plus.
    """
    assert re.fullmatch(r"v\d+\.\d+\.\d+\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*", version_info()["gitVersion"])
