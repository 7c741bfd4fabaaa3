"""Tests of links in HTML, with the test cases of apimachinery's `pkg/util/proxy/transport_test.go` and some test cases
of its tokenizer.
"""

from __future__ import annotations

import gzip
import zlib

import pytest

from ctrlmgr.http.proxying.hop_headers import ExternalAddress
from ctrlmgr.http.proxying.html_body import HtmlBody, is_rewritable
from ctrlmgr.http.proxying.html_links import LinkRewriter
from ctrlmgr.http.proxying.upstream_address import UpstreamMalformed
from ctrlmgr.http.proxying.upstream_connection import ResponseHead

OUTSIDE = ExternalAddress("http", "foo.com", "/proxy/node/node1:10250")
HERE = "http://foo.com/proxy/node/node1:10250"


def rewritten(link: str) -> str:
    return OUTSIDE.rewritten(link, "mynode.com", "asked.example")


def passed(document: bytes, size: int) -> bytes:
    """Return a document that the rewriter receives in pieces of `size` bytes."""
    links = LinkRewriter(rewritten)
    pieces = [links.feed(document[at : at + size]) for at in range(0, len(document), size)]
    return b"".join(pieces) + links.end()


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            '<pre><a href="kubelet.log">kubelet.log</a><a href="/google.log">google.log</a></pre>',
            f'<pre><a href="kubelet.log">kubelet.log</a><a href="{HERE}/google.log">google.log</a></pre>',
        ),
        (
            '<html><header></header><body><a href="/google.log/">x</a></body></html>',
            f'<html><header></header><body><a href="{HERE}/google.log/">x</a></body></html>',
        ),
        (
            '<pre><img src="kubernetes.jpg"/><img src="/kubernetes_abs.jpg"/></pre>',
            f'<pre><img src="kubernetes.jpg"/><img src="{HERE}/kubernetes_abs.jpg"/></pre>',
        ),
        ('<script src="http://google.com/kubernetes.js"/>', '<script src="http://google.com/kubernetes.js"/>'),
        ('<script src="http://mynode.com/kubernetes.js"/>', f'<script src="{HERE}/kubernetes.js"/>'),
        (f'<a href="{HERE}/google.log">x</a>', f'<a href="{HERE}/google.log">x</a>'),
        ("<A CLASS=b HREF=/x TARGET=c>", f'<A CLASS=b HREF="{HERE}/x" TARGET=c>'),
        ("<a title='a > b' href = '/x?a=1&amp;b=2'>", f"<a title='a > b' href = \"{HERE}/x?a=1&amp;b=2\">"),
        ("<a href=/x><a data-href=/x><div href=/x>", f'<a href="{HERE}/x"><a data-href=/x><div href=/x>'),
        ("<!-- <a href='/x'> --><a href=/y>", f"<!-- <a href='/x'> --><a href=\"{HERE}/y\">"),
        ("<script>'<a href=/x>'</SCRIPT ><a href=/y>", f"<script>'<a href=/x>'</SCRIPT ><a href=\"{HERE}/y\">"),
        ("1 < 2 <3 <> </ <!x> <a", "1 < 2 <3 <> </ <!x> <a"),
        ('<a href="/never closed>', '<a href="/never closed>'),
        ('<img SRC="/é.png">', f'<img SRC="{HERE}/%C3%A9.png">'),
        ('<a href="/x"title=y>', f'<a href="{HERE}/x"title=y>'),
    ],
)
def test_links_to_the_upstream_server_are_rewritten(document: str, expected: str) -> None:
    for size in (1, 2, 3, 7, 1000):
        assert passed(document.encode(), size).decode() == expected


def test_a_too_long_tag_is_passed_on() -> None:
    document = b"<a x='" + b"y" * 20_000 + b"' href=/x><a href=/z>"
    assert passed(document, 4096) == document.replace(b"/z>", f'"{HERE}/z">'.encode())


@pytest.mark.parametrize("part", [b"<a ", b"<a x=", b'<a x="', b"<a x='>", b"<", b"<!--", b"<a <b x=\"> <c y='"])
def test_time_is_linear_in_the_document(part: bytes) -> None:
    size = 1_000_000
    document = part * (size // len(part))
    assert passed(document, 65536) == document


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("/redirected/target/%00<script>alert(1)</script>/", "/target/%00%3Cscript%3Ealert%281%29%3C/script%3E/"),
        ("http://mynode.com/redirected/target/", "/target/"),
    ],
)
def test_a_rewritten_location_is_escaped(link: str, expected: str) -> None:
    assert rewritten(link) == f"{HERE}/redirected{expected}"


def test_a_location_on_another_host_is_escaped() -> None:
    link = "http://example.com/target/%00<script>alert(1)</script>/"
    assert rewritten(link) == "http://example.com/target/%00%3Cscript%3Ealert%281%29%3C/script%3E/"


def test_without_host_and_scheme_the_requests_are_used() -> None:
    outside = ExternalAddress("", "", "/prefix")
    assert outside.rewritten("http://10.0.0.1:8001/a/", "x", "10.0.0.1:8001") == "http://10.0.0.1:8001/prefix/a/"
    assert outside.rewritten("/a", "x", "10.0.0.1:8001") == "/prefix/a"


DOCUMENT = b'<a href="/x">' + b"text " * 100_000
EXPECTED = DOCUMENT.replace(b"/x", f"{HERE}/x".encode())


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate"])
def test_compressed_html_is_rewritten(encoding: bytes) -> None:
    window = {b"gzip": 31, b"deflate": -15}[encoding]
    packer = zlib.compressobj(wbits=window)
    packed = packer.compress(DOCUMENT) + packer.flush()
    body = HtmlBody(ResponseHead(200, [(b"content-encoding", encoding)]), rewritten)
    parts = [part for at in range(0, len(packed), 100) for part in body.feed(packed[at : at + 100])]
    assert zlib.decompress(b"".join(parts) + body.end(), window) == EXPECTED


def test_broken_compression_is_an_error() -> None:
    body = HtmlBody(ResponseHead(200, [(b"content-encoding", b"gzip")]), rewritten)
    with pytest.raises(UpstreamMalformed):
        list(body.feed(b"no gzip"))
    body = HtmlBody(ResponseHead(200, [(b"content-encoding", b"gzip")]), rewritten)
    list(body.feed(gzip.compress(DOCUMENT)[:50]))
    with pytest.raises(UpstreamMalformed):
        body.end()


@pytest.mark.parametrize(
    ("code", "headers", "expected"),
    [
        (200, [(b"content-type", b"text/html; charset=utf-8")], True),
        (404, [(b"content-type", b"text/html")], True),
        (200, [(b"content-type", b"text/plain")], False),
        (304, [(b"content-type", b"text/html")], False),
        (302, [(b"content-type", b"text/html"), (b"location", b"/x")], False),
        (200, [(b"content-type", b"text/html"), (b"content-encoding", b"br")], False),
    ],
)
def test_only_html_in_a_known_encoding_is_rewritten(
    code: int, headers: list[tuple[bytes, bytes]], expected: bool
) -> None:
    assert is_rewritable(ResponseHead(code, headers)) is expected
