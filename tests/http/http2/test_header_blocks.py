"""Tests of header blocks: the server decodes the fields that were sent, and refuses ambiguous fields."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.http.http2.frames import Code, ConnectionFault, StreamFault
from ctrlmgr.http.http2.header_blocks import BlockReader, written
from ctrlmgr.http.request_head import BAD_REQUEST, EXPECTATION_FAILED, TOO_LARGE, Head, Malformed
from ctrlmgr.http.size_limits import DEFAULT, Bounds

Fields = list[tuple[bytes, bytes]]

PSEUDO: Fields = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"x"), (b":path", b"/a?b=c")]
NAMES = st.sampled_from([b"accept", b"user-agent", b"authorization", b"x-a", b"cache-control"])
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40).map(str.encode)


class Sender:
    """Encodes header blocks as a client does, with or without a dynamic table."""

    def __init__(self, *, table: bool) -> None:
        self._encoder = Encoder()
        if not table:
            self._encoder.header_table_size = 0

    def block(self, fields: Fields, *, huffman: bool = True) -> bytes:
        return self._encoder.encode(fields, huffman=huffman)


def read(*fields: tuple[bytes, bytes], bounds: Bounds = DEFAULT, table: bool = True) -> Head:
    return BlockReader(bounds).read(Sender(table=table).block(list(fields)))


@pytest.fixture(params=[True, False], ids=["table", "no table"])
def table(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@given(st.booleans(), st.booleans(), st.lists(st.tuples(NAMES, VALUES), max_size=5), st.lists(VALUES, max_size=4))
def test_decoded_headers_equal_the_sent_ones(table: bool, huffman: bool, lines: Fields, queries: list[bytes]) -> None:
    sender, reader = Sender(table=table), BlockReader(DEFAULT)
    for query in queries:
        path = b"/" + query.hex().encode()
        fields = [(b":method", b"PUT"), (b":authority", b"h:1"), (b":path", path), (b":scheme", b"https"), *lines]
        head = reader.read(sender.block(fields, huffman=huffman))
        assert (head.method, head.path, head.query, head.version) == ("PUT", path, b"", "2")
        assert head.headers == [(b"host", b"h:1"), *lines]


def test_without_a_table_equal_headers_are_decoded_once() -> None:
    sender, reader = Sender(table=False), BlockReader(DEFAULT)
    more = [(b"user-agent", b"kubectl"), (b"content-length", b"7")]
    sender.block(PSEUDO)  # declares a table of size 0
    heads = [reader.read(b"\x20" + sender.block([*PSEUDO, *more]))]
    heads += [reader.read(sender.block([*PSEUDO[:3], (b":path", b"/%d" % at), *more])) for at in range(3)]
    assert [head.path for head in heads] == [b"/a", b"/0", b"/1", b"/2"]
    assert heads[1].headers is heads[2].headers is heads[3].headers
    assert {head.length for head in heads} == {7}
    other = reader.read(sender.block([*PSEUDO[:2], (b":authority", b"y"), PSEUDO[3], *more]))
    assert (other.headers[0], heads[1].headers[0]) == ((b"host", b"y"), (b"host", b"x"))


@pytest.mark.parametrize("literal", [0x04, 0x05, 0x14, 0x15, 0x44, 0x45])
def test_a_path_can_be_encoded_in_several_ways(literal: int) -> None:
    reader = BlockReader(DEFAULT)
    reader.read(b"\x20" + b"\x82\x87\x01\1x%c\2/a" % literal)
    heads = [reader.read(b"\x82\x87\x01\1x%c\2/%c" % (literal, letter)) for letter in b"bcd"]
    assert [head.path for head in heads] == [b"/b", b"/c", b"/d"]
    assert heads[0].headers is heads[1].headers is heads[2].headers


def test_the_cache_of_a_connection_is_bounded() -> None:
    sender, reader = Sender(table=False), BlockReader(DEFAULT)
    reader.read(sender.block(PSEUDO))
    for at in range(1000):
        head = reader.read(sender.block([*PSEUDO[:3], (b":path", b"/p%d" % at), (b"x", b"%d" % at)]))
        assert (head.path, head.headers[1:]) == (b"/p%d" % at, [(b"x", b"%d" % at)])
    assert 0 < len(reader._around) <= 128
    for at in range(1000):
        assert reader.read(sender.block([*PSEUDO[:3], (b":path", b"/p%d" % at)])).path == b"/p%d" % at
    assert 0 < len(reader._heads) <= 32
    for at in range(100):
        before = [PSEUDO[0], PSEUDO[1], (b":authority", b"%d" % at)]
        assert reader.read(sender.block([*before, (b":path", b"/")])).headers[0] == (b"host", b"%d" % at)
    assert len(reader._beginnings) <= 16


def test_a_repeated_block_is_not_decoded_again() -> None:
    sender, reader = Sender(table=False), BlockReader(DEFAULT)
    sender.block(PSEUDO)
    for size in (b"\x20", b""):
        reader.read(size + sender.block(PSEUDO))
    short, long = ([*PSEUDO[:3], (b":path", b"/" + b"x" * size)] for size in (1, 3000))
    assert reader.read(sender.block(short)) is reader.read(sender.block(short))
    # the entry is larger than the cache allows
    assert reader.read(sender.block(long)) is not reader.read(sender.block(long))


def test_a_client_that_resumes_a_table_is_decoded_correctly() -> None:
    encoder, reader = Encoder(), BlockReader(DEFAULT)
    more = [(b"x-a", b"1")]
    for size in (0, 4096, 0, 4096, 4096):
        encoder.header_table_size = size
        for _ in range(3):
            assert reader.read(encoder.encode([*PSEUDO, *more])).headers == [(b"host", b"x"), *more]


BEGUN = b"\x82\x87\x01\1x\x04\2/a"
KEPT = b"\x40\3x-a\1%d"
NEWEST = b"\xbe"


def test_a_truncated_path_is_not_recognized() -> None:
    reader = BlockReader(DEFAULT)
    reader.read(b"\x20" + BEGUN)
    reader.read(BEGUN)
    with pytest.raises(ConnectionFault):
        reader.read(BEGUN[:-1])


def test_references_to_tables_are_decoded_each_time() -> None:
    reader = BlockReader(DEFAULT)
    for number in (1, 2):
        reader.read(BEGUN + KEPT % number)
        assert reader.read(BEGUN + NEWEST).headers[1] == (b"x-a", b"%d" % number)
    reader.read(b"\x20" + BEGUN)
    with pytest.raises(ConnectionFault):
        reader.read(BEGUN + NEWEST)


def test_entries_for_a_table_are_kept_for_its_return() -> None:
    reader = BlockReader(DEFAULT)
    reader.read(b"\x20" + BEGUN)
    for _ in range(2):
        reader.read(BEGUN + KEPT % 1)
    reader.read(b"\x3f\xe1\x1f" + BEGUN)
    reader.read(BEGUN + KEPT % 1)
    assert reader.read(BEGUN + NEWEST).headers[1] == (b"x-a", b"1")


@pytest.mark.parametrize(
    "fields",
    [
        PSEUDO[1:],
        [*PSEUDO[:1], *PSEUDO[2:]],
        PSEUDO[:3],
        [*PSEUDO, PSEUDO[0]],
        [PSEUDO[0], *PSEUDO],
        [*PSEUDO, (b":path", b"/b")],
        [*PSEUDO, (b":status", b"200")],
        [*PSEUDO, (b":protocol", b"websocket")],
        [*PSEUDO[:3], (b"x", b"y"), PSEUDO[3]],
        [(b":method", b"CONNECT"), (b":authority", b"x")],
        [(b":method", b"GE T"), *PSEUDO[1:]],
        [(b":method", b""), *PSEUDO[1:]],
        [*PSEUDO[:3], (b":path", b"")],
        [*PSEUDO, (b"X-Upper", b"y")],
        [*PSEUDO, (b"a b", b"y")],
        [*PSEUDO, (b"a:", b"y")],
        [*PSEUDO, (b"", b"y")],
        [*PSEUDO, (b"a", b"b\r\nc: d")],
        [*PSEUDO, (b"a", b"b\0")],
        [*PSEUDO, (b"a", b" b")],
        [*PSEUDO, (b"a", b"b\t")],
        [*PSEUDO, (b"connection", b"close")],
        [*PSEUDO, (b"transfer-encoding", b"chunked")],
        [*PSEUDO, (b"upgrade", b"websocket")],
        [*PSEUDO, (b"keep-alive", b"1")],
        [*PSEUDO, (b"proxy-connection", b"close")],
        [*PSEUDO, (b"te", b"gzip")],
        [*PSEUDO, (b"content-length", b"1"), (b"content-length", b"1")],
        [*PSEUDO, (b"content-length", b"+1")],
        [*PSEUDO, (b"content-length", b"1" * 19)],
    ],
)
def test_invalid_requests_are_refused(fields: Fields, table: bool) -> None:
    with pytest.raises(StreamFault) as caught:
        read(*fields, table=table)
    assert caught.value.code is Code.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([*PSEUDO[:2], PSEUDO[3]], BAD_REQUEST),
        ([*PSEUDO[:2], PSEUDO[3], (b"host", b"a"), (b"host", b"b")], BAD_REQUEST),
        ([*PSEUDO[:3], (b":path", b"a b")], BAD_REQUEST),
        ([*PSEUDO, (b"expect", b"wonders")], EXPECTATION_FAILED),
        ([*PSEUDO, *[(b"x", b"y")] * 7], TOO_LARGE),
        ([*PSEUDO, (b"x", b"y" * 100_001)], TOO_LARGE),
    ],
)
def test_some_errors_have_a_response(fields: Fields, status: str, table: bool) -> None:
    with pytest.raises(Malformed) as caught:
        read(*fields, table=table, bounds=Bounds(header_count=10, head_bytes=100_000))
    assert caught.value.status == status


def test_after_too_large_headers_the_next_ones_are_decoded() -> None:
    sender, reader = Sender(table=True), BlockReader(Bounds(header_count=10))
    with pytest.raises(Malformed):
        reader.read(sender.block([*PSEUDO, *[(b"x-%d" % at, b"y") for at in range(15)]]))
    assert reader.read(sender.block([*PSEUDO, (b"x-14", b"y")])).headers == [(b"host", b"x"), (b"x-14", b"y")]


def test_validation_stops_after_many_unknown_fields(table: bool) -> None:
    with pytest.raises(ConnectionFault) as caught:
        read(*PSEUDO, *[(b"x", b"y")] * 30, table=table, bounds=Bounds(header_count=10))
    assert caught.value.code is Code.ENHANCE_YOUR_CALM


def test_the_host_is_the_authority_and_cookies_are_one(table: bool) -> None:
    head = read(
        *PSEUDO, (b"host", b"other"), (b"cookie", b"a=1"), (b"te", b"trailers"), (b"cookie", b"b=2"), table=table
    )
    assert head.headers == [(b"host", b"x"), (b"te", b"trailers"), (b"cookie", b"a=1; b=2")]
    assert read(*PSEUDO[:2], PSEUDO[3], (b"host", b"y"), table=table).headers == [(b"host", b"y")]


def test_a_client_can_wait_for_100_continue(table: bool) -> None:
    head = read(*PSEUDO, (b"expect", b"100-Continue"), (b"content-length", b"3"), table=table)
    assert (head.expects_continue, head.length) == (True, 3)


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",  # no index; an index of the dynamic table, which is empty; a truncated number
        b"\xbe",  # a table's first, where it has none
        b"\xff",  # a number cut short
        b"\xff\xff\xff\xff\xff\xff\xff",  # a string that is too long
        b"\x40",  # a literal without a name
        b"\x40\x01a",  # a missing value, or an incomplete name
        b"\x40\x05a",  # or all of its name
        b"\x40\x81\xff\x01a",  # a name with an invalid Huffman code
        b"\x82\x3f\xe1\x1f",  # a table size after a field
        b"\x3f\xe2\x1f",  # a table size that exceeds the limit
    ],
)
def test_an_undecodable_block_ends_the_connection(block: bytes) -> None:
    for begun in (b"", b"\x20"):
        reader = BlockReader(DEFAULT)
        with pytest.raises(ConnectionFault) as caught:
            reader.read(begun + block)
        assert caught.value.code is Code.COMPRESSION_ERROR
    with pytest.raises(ConnectionFault):
        BlockReader(DEFAULT).skip(block)


def test_trailers_are_decoded_and_dropped() -> None:
    encoder, reader = Encoder(), BlockReader(DEFAULT)
    reader.read(encoder.encode(PSEUDO))
    reader.skip(encoder.encode([(b"x-trailer", b"late")]))
    assert reader.read(encoder.encode([*PSEUDO, (b"x-trailer", b"late")])).headers[-1] == (b"x-trailer", b"late")


@given(st.integers(100, 599), st.lists(st.tuples(NAMES, VALUES), max_size=12), st.integers(0, 400), st.booleans())
def test_an_encoded_response_decodes_to_the_same(code: int, lines: Fields, size: int, has_own: bool) -> None:
    own = (b"audit-id", b"a" * size)
    block = written(code, (b"date", b"now"), lines, own=own if has_own else None, length=size)
    expected = [(b":status", b"%d" % code), (b"date", b"now"), *lines, *([own] if has_own else [])]
    decoded = Decoder().decode(block, raw=True)
    assert [(bytes(name), bytes(value)) for name, value in decoded] == [*expected, (b"content-length", b"%d" % size)]


@pytest.mark.parametrize("value", [b"a\r\nb", b"a\nb", b"a\0b"])
def test_a_response_header_with_a_line_break_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="line break"):
        written(200, (b"date", b"now"), [(b"x", value)])
