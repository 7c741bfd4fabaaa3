"""Tests of valid and invalid requests, and tests that the cost of parsing is linear in the number of bytes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from ctrlmgr.http.parser import RequestParser
from ctrlmgr.http.request_head import LONGEST_TARGET, Head, Malformed
from ctrlmgr.http.size_limits import DEFAULT, Bounds

GET = b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: x\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
BAD, TOO_LARGE = "400 Bad Request", "431 Request Header Fields Too Large"


class ParserResults:
    """A request parser, and the results of parsing."""

    def __init__(self, bounds: Bounds = DEFAULT) -> None:
        self.heads: list[Head] = []
        self._bodies: list[bytearray] = []  # bytearrays, because appending to bytes copies them
        self.ended = 0
        self.parser = RequestParser(self, bounds)

    @property
    def bodies(self) -> list[bytes]:
        """Return the parts of request bodies that were received."""
        return [bytes(each) for each in self._bodies]

    def on_head(self, head: Head) -> None:
        self.heads.append(head)
        self._bodies.append(bytearray())

    def on_body(self, piece: bytes) -> None:
        self._bodies[-1] += piece

    def on_end(self) -> None:
        self.ended += 1

    def feed(self, data: bytes, piece: int = 65_536) -> ParserResults:
        for at in range(0, len(data), piece):
            self.parser.feed(data[at : at + piece])
        return self

    def refusal(self, data: bytes, piece: int = 65_536) -> str:
        with pytest.raises(Malformed) as refused:
            self.feed(data, piece)
        return refused.value.status


@pytest.mark.parametrize("piece", [1, 3, 7, 65_536])
def test_requests_are_equal_for_any_chunks(piece: int) -> None:
    sent = (
        GET
        + POST
        + b"content-length: 3\r\n\r\nabc"
        + CHUNKED
        + b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n\r\n\r\n"
        + b"DELETE /a%2Fb?c=%20d&e HTTP/1.0\r\nX-Two: 1\r\nx-two: 2\r\n\r\n"
    )
    heard = ParserResults().feed(sent, piece)
    assert [(head.method, head.path, head.query, head.version, head.keep_alive) for head in heard.heads] == [
        ("GET", b"/version", b"", "1.1", True),
        ("POST", b"/", b"", "1.1", True),
        ("POST", b"/", b"", "1.1", True),
        ("DELETE", b"/a%2Fb", b"c=%20d&e", "1.0", False),
    ]
    assert heard.bodies == [b"", b"abc", b"abcde", b""]
    assert heard.ended == 4
    assert heard.heads[3].headers == [(b"x-two", b"1"), (b"x-two", b"2")]


TARGETS = {
    b"/a#b": (b"/a", b""),
    b"/a?b#c": (b"/a", b"b"),
    b"//evil/": (b"//evil/", b""),
    b"http://x/a?b": (b"/a", b"b"),
    b"http://x": (b"/", b""),
    b"*": (b"*", b""),
    b"/a?b?c/d": (b"/a", b"b?c/d"),
    b'/a"<>b': (b'/a"<>b', b""),
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_parsed_in_every_form(target: bytes) -> None:
    head = ParserResults().feed(b"OPTIONS %b HTTP/1.1\r\nhost: x\r\n\r\n" % target).heads[0]
    assert (head.path, head.query) == TARGETS[target]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.0\r\nhost: x\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\nhost: x\n\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx : y\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx: y\r\n z\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx: y\x00z\r\n\r\n",
        POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\n",
        POST + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        POST + b"content-length: +1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a/b\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: u@x\r\n\r\n",
        b"GET / HTTP/1.0\r\nhost: a\xffb\r\n\r\n",
        POST + b"transfer-encoding: chunked, chunked\r\n\r\n",
        POST + b"transfer-encoding: chunked, identity\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"1\r\nab\r\n",
        CHUNKED + b"1\nab\n",
        CHUNKED + b"fffffffffffffffff\r\n",
    ],
)
@pytest.mark.parametrize("piece", [1, 65_536])
def test_ambiguous_requests_are_refused(sent: bytes, piece: int) -> None:
    assert ParserResults().refusal(sent, piece) == BAD


@pytest.mark.parametrize("host", [b"x:6443", b"[::1]:6443", b"a_b.c~d", b"", b"x \t"])
def test_a_host_is_valid_as_in_go(host: bytes) -> None:
    assert ParserResults().feed(b"GET / HTTP/1.1\r\nhost: %b\r\n\r\n" % host).ended == 1


@pytest.mark.parametrize(
    "coding",
    [b"xchunked", b"gzip, chunked", b"gzip,chunked", b"gzip\r\ntransfer-encoding: chunked"],
)
@pytest.mark.parametrize("piece", [1, 65_536])
def test_chunked_is_the_only_accepted_transfer_encoding(coding: bytes, piece: int) -> None:
    sent = POST + b"transfer-encoding: %b\r\n\r\n" % coding
    assert ParserResults().refusal(sent, piece) == "501 Not Implemented"


def test_the_transfer_encoding_is_case_insensitive() -> None:
    assert ParserResults().feed(POST + b"transfer-encoding: Chunked \r\n\r\n1\r\na\r\n0\r\n\r\n").bodies == [b"a"]


@pytest.mark.parametrize("target", [b"/" + b"a" * LONGEST_TARGET, b"/?" + b"a=%41&" * 30_000])
def test_the_length_of_a_target_is_limited(target: bytes) -> None:
    assert ParserResults().refusal(b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n" % target) == "414 URI Too Long"
    assert ParserResults().feed(b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n" % target[:LONGEST_TARGET]).ended == 1


def test_an_expectation_is_fulfilled_or_refused() -> None:
    assert ParserResults().feed(POST + b"Expect: 100-Continue\r\ncontent-length: 1\r\n\r\n").heads[0].expects_continue
    assert ParserResults().refusal(POST + b"expect: 200-ok\r\n\r\n") == "417 Expectation Failed"
    old = ParserResults().feed(b"POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n")
    assert not old.heads[0].expects_continue, "a client of HTTP/1.0 does not know the answer"


def test_another_version_is_refused() -> None:
    assert ParserResults().refusal(b"GET / HTTP/2.0\r\nhost: x\r\n\r\n") == "505 HTTP Version Not Supported"


# Trailers.


TRAILERS = b"3\r\nabc\r\n0\r\nAuthorization: Bearer t\r\nImpersonate-User: admin\r\n\r\n"


@pytest.mark.parametrize("piece", [1, 65_536])
def test_trailers_are_never_used_as_headers(piece: int) -> None:
    heard = ParserResults().feed(CHUNKED + TRAILERS + GET, piece)
    assert [name for name, _ in heard.heads[0].headers] == [b"host", b"transfer-encoding"]
    assert (heard.bodies, heard.ended) == ([b"abc", b""], 2)


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"0\r\n" + b"x: aaa\r\n" * 1_000_000, id="many"),
        pytest.param(b"0\r\nx: " + b"a" * 10_000_000, id="a long one"),
        pytest.param(b"0\r\n" + b"x" * 10_000_000, id="a long name"),
    ],
)
@pytest.mark.parametrize("piece", [1000, 65_536])
def test_trailers_without_an_end_are_refused(endless: bytes, piece: int) -> None:
    heard = ParserResults().feed(CHUNKED)
    assert heard.refusal(endless[: 3 * 65_536], piece) == BAD
    assert len(heard.heads[0].headers) == 2


@pytest.mark.parametrize("body", [b"1;" + b"x" * 1_000_000, b"1;x=y\r\na\r\n;" * 200_000])
def test_chunk_extensions_are_bounded(body: bytes) -> None:
    assert ParserResults().refusal(CHUNKED + body, 10_000) == BAD


def test_chunks_can_have_any_small_size() -> None:
    heard = ParserResults().feed(CHUNKED + b"1\r\na\r\n" * 100_000 + b"0\r\n\r\n", 10_000)
    assert (len(heard.bodies[0]), heard.ended) == (100_000, 1)


# Limits of headers.


@pytest.mark.parametrize("piece", [100, 65_536])
def test_the_bytes_of_headers_are_limited(piece: int) -> None:
    bounds = replace(DEFAULT, head_bytes=10_000, unread_bytes=1000)
    filler = b"GET / HTTP/1.1\r\nhost: x\r\nx: %b\r\n\r\n"
    assert ParserResults(bounds).feed(filler % (b"a" * 9900), piece).ended == 1
    assert ParserResults(bounds).refusal(filler % (b"a" * 10_000), piece) == TOO_LARGE
    assert ParserResults(bounds).refusal(b"GET /" + b"a" * 20_000, piece) == TOO_LARGE
    assert ParserResults(bounds).refusal(b"GET / HTTP/1.1\r\nhost: " + b"a" * 20_000, piece) == TOO_LARGE


def test_the_number_of_headers_is_limited() -> None:
    bounds = replace(DEFAULT, header_count=10)
    lines = b"GET / HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * 9
    assert ParserResults(bounds).feed(lines + b"\r\n").ended == 1
    assert ParserResults(bounds).refusal(lines + b"x: y\r\n\r\n") == TOO_LARGE


class CopyCounter:
    """The number of bytes that were passed to httptools, including bytes that httptools copies again."""

    def __init__(self, parser: Any) -> None:
        self.copied = 0
        self._parser = parser
        self._since_head = 0

    def feed_data(self, data: bytes) -> None:
        self._since_head += len(data)
        self.copied += self._since_head  # httptools copies an incomplete header with every piece
        self._parser.feed_data(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_headers_received_byte_by_byte_are_copied_a_few_times_only(size: int) -> None:
    heard = ParserResults()
    counting = CopyCounter(heard.parser._parser)
    heard.parser._parser = counting  # type: ignore[assignment]  # it passes everything on
    heard.feed(b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * size + b"\r\n\r\n", 1)
    assert heard.ended == 1
    assert counting.copied < 8 * size


# Header lines that are cached.


LINES = b"\r\nHost: x\r\nAuthorization: Bearer t\r\nX-Two: a\r\nx-two: b\r\nConnection: keep-alive\r\n\r\n"


def parsed(heard: ParserResults) -> list[bytes]:
    """Record the bytes that are passed to httptools from now on."""
    given: list[bytes] = []

    class RecordingParser(CopyCounter):
        def feed_data(self, data: bytes) -> None:
            given.append(data)
            self._parser.feed_data(data)

    heard.parser._parser = RecordingParser(heard.parser._parser)  # type: ignore[assignment]  # it passes everything on
    return given


@pytest.mark.parametrize(
    "target",
    [
        b"/api/v1/namespaces/n/pods/p",
        b"/api/v1/pods?watch=true&labelSelector=a%3Db",
        b"/api/v1/pods?",
        b"/api/v1/pods?fieldSelector=metadata.name=a?b/c",
        b"/a%2Fb/%C3%A4",
    ],
)
def test_cached_header_lines_equal_parsed_ones(target: bytes) -> None:
    heard = ParserResults().feed(b"GET " + target + b" HTTP/1.1" + LINES)
    given = parsed(heard)
    heard.feed(b"GET " + target + b" HTTP/1.1" + LINES)
    assert (given, heard.ended) == ([], 2)
    assert heard.heads[1] == heard.heads[0]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET //evil/ HTTP/1.1" + LINES,
        b"GET /a#b HTTP/1.1" + LINES,
        b"GET http://x/a HTTP/1.1" + LINES,
        b"GET /a HTTP/1.0" + LINES,
        b"HEAD /a HTTP/1.1" + LINES,
        b"GET /a HTTP/1.1" + LINES + b"GET /b HTTP/1.1" + LINES,
        b"GET /a HTTP/1.1" + LINES.replace(b"Bearer t", b"Bearer u"),
        b"\r\nGET /a HTTP/1.1" + LINES,
    ],
)
def test_unknown_header_lines_are_parsed(sent: bytes) -> None:
    heard = ParserResults().feed(b"GET / HTTP/1.1" + LINES)
    given = parsed(heard)
    heard.feed(sent)
    assert given == [sent]


@pytest.mark.parametrize(
    "line",
    [
        b"Expect: 100-continue",
        b"Connection: close",
        b"Content-Length:  0",
        b"X: " + b"x" * 2048,
    ],
)
def test_lines_with_further_meaning_are_parsed_each_time(line: bytes) -> None:
    sent = b"GET / HTTP/1.1\r\nhost: x\r\n" + line + b"\r\n\r\n"
    heard = ParserResults().feed(sent)
    given = parsed(heard)
    heard.feed(sent)
    assert given == [sent]


def write(body: bytes, method: bytes = b"POST", length: int | None = None) -> bytes:
    """Return a request whose body may be shorter or longer than the value of its content-length."""
    said = b"\r\nContent-Length: %d" % (len(body) if length is None else length)
    return method + b" /a?b=c HTTP/1.1\r\nHost: x" + said + LINES.removeprefix(b"\r\nHost: x") + body


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"PATCH", b"DELETE", b"GET"])
def test_cached_lines_are_used_for_any_body(method: bytes) -> None:
    heard = ParserResults().feed(write(b"one", method))
    given = parsed(heard)
    for body in (b"another", b"", b"{}", b"x" * 20_000, GET):
        heard.feed(write(body, method))
    assert given == []
    assert heard.bodies == [b"one", b"another", b"", b"{}", b"x" * 20_000, GET]
    assert [head.length for head in heard.heads] == [len(body) for body in heard.bodies]
    assert [head._replace(length=3) for head in heard.heads] == [heard.heads[0]] * 6


@pytest.mark.parametrize(
    "sent",
    [
        write(b"abc", length=4),
        write(b"abc", length=2) + GET,
        write(b"abc") + GET,
        write(b"abc", b"PUT"),
        write(b"abc").replace(b"Length: 3", b"Length: 03\x20"),
        write(b"abc").replace(b"Length: 3", b"Length: 3\r\nX: y"),
        write(b"").replace(b"Content-Length: 0\r\n", b""),
        write(b"abc").replace(b"Bearer t", b"Bearer u"),
    ],
)
def test_a_body_of_another_length_or_with_other_lines_is_parsed(sent: bytes) -> None:
    heard = ParserResults().feed(write(b"one"))
    given = parsed(heard)
    with suppress(Malformed):
        heard.feed(sent)
    assert given == [sent]


@pytest.mark.parametrize("length", [b"+3", b"-3", b" 3", b"3 ", b"0x3", b"3,3", b"\xb2", b"", b"9" * 5000])
def test_cached_lines_do_not_accept_an_invalid_length(length: bytes) -> None:
    sent = write(b"abc").replace(b"Length: 3", b"Length: " + length)
    familiar, other = ParserResults().feed(write(b"one")), ParserResults()
    for heard in (familiar, other):
        with suppress(Malformed):
            heard.feed(sent)
    assert familiar.bodies[1:] == other.bodies
    assert [head.length for head in familiar.heads[1:]] == [head.length for head in other.heads]


def test_each_method_has_separate_cached_lines() -> None:
    other = LINES.replace(b"Bearer t", b"Bearer u")
    heard = ParserResults().feed(write(b"one")).feed(b"GET / HTTP/1.1" + other)
    given = parsed(heard)
    heard.feed(write(b"two")).feed(b"GET / HTTP/1.1" + other).feed(write(b"three"))
    assert (given, heard.ended) == ([], 5)
    assert [dict(head.headers)[b"authorization"][-1:] for head in heard.heads] == [b"t", b"u", b"t", b"u", b"t"]


def test_a_body_that_looks_like_a_request_is_not_cached() -> None:
    hidden = b"GET / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer stolen\r\n\r\n"
    heard = ParserResults().feed(POST + b"content-length: %d\r\n\r\n" % len(hidden)).feed(hidden)
    given = parsed(heard)
    heard.feed(hidden)
    assert given == [hidden]
    assert (b"authorization", b"Bearer stolen") in heard.heads[1].headers


def test_an_incomplete_request_is_not_completed_from_the_cache() -> None:
    heard = ParserResults().feed(b"GET / HTTP/1.1" + LINES).feed(b"POST / HTTP/1.1\r\nhost: x\r\nx: ")
    heard.feed(b"GET /hidden HTTP/1.1" + LINES.replace(b"\r\nHost: x", b""))
    assert [(head.method, head.path) for head in heard.heads] == [("GET", b"/"), ("POST", b"/")]


def test_connections_share_no_header_lines() -> None:
    ParserResults().feed(b"GET / HTTP/1.1" + LINES)
    other = ParserResults()
    given = parsed(other)
    other.feed(b"GET / HTTP/1.1" + LINES)
    assert len(given) == 1


def test_nothing_is_parsed_after_an_upgrade() -> None:
    heard = ParserResults().feed(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n" + GET)
    assert ([head.keep_alive for head in heard.heads], heard.parser.is_over) == ([False], True)
    heard.feed(GET)
    heard.parser.close()
    heard.feed(GET)
    assert heard.ended == 1
