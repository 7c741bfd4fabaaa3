"""Tests of the framing of lists: with a content-length if the length is known, otherwise in chunks."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.server.site import CONFIG_MAPS, TIMEOUT, Site, running

LARGE = 100_000
GZIP = {"Accept-Encoding": "gzip"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running() as site:
        for number in range(15):
            site.create(f"large-{number:02}", text="x" * LARGE)
        yield site


def listed(site: Site, query: str, headers: dict[str, str]) -> tuple[http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=TIMEOUT)
    try:
        connection.request("GET", CONFIG_MAPS + query, headers=headers)
        response = connection.getresponse()
        return response.headers, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("query", "headers", "framing", "packed"),
    [
        pytest.param("?limit=1", {}, "content-length", False, id="one piece"),
        pytest.param("?limit=5", {}, "content-length", False, id="pieces that are all there"),
        pytest.param("", {}, "transfer-encoding", False, id="too large to be made at once"),
        pytest.param("?limit=1", GZIP, "content-length", False, id="not worth packing"),
        pytest.param("?limit=5", GZIP, "transfer-encoding", True, id="packed"),
        pytest.param("", GZIP, "transfer-encoding", True, id="packed piece by piece"),
        pytest.param("", TABLE, "content-length", False, id="a short table"),
        pytest.param("?includeObject=Object", TABLE, "transfer-encoding", False, id="a long table"),
    ],
)
def test_a_list_is_framed_as_it_is_encoded(
    site: Site, query: str, headers: dict[str, str], framing: str, packed: bool
) -> None:
    answers = [listed(site, query, headers) for _ in range(2)]
    for told, body in answers:
        assert framing in told
        assert (told["content-encoding"] == "gzip") is packed
        answer = json.loads(gzip.decompress(body) if packed else body)
        assert len(answer["rows" if headers is TABLE else "items"]) == (int(query[-1]) if "limit" in query else 15)
    assert answers[0][1] == answers[1][1]


def test_a_client_of_http_1_0_gets_a_content_length(site: Site) -> None:
    with site.connect() as connection:
        connection.sendall(f"GET {CONFIG_MAPS} HTTP/1.0\r\nhost: x\r\n\r\n".encode())
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head
    assert len(json.loads(body)["items"]) == 15


def test_a_changed_list_has_other_bytes(site: Site) -> None:
    before = listed(site, "?limit=5", {})[1]
    site.change("large-03", text="changed")
    after = json.loads(listed(site, "?limit=5", {})[1])
    site.change("large-03", text="x" * LARGE)
    assert (b"changed" in before, after["items"][3]["data"]) == (False, {"text": "changed"})
