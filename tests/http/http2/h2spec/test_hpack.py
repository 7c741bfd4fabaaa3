"""Tests h2spec's HPACK part: decoding errors (RFC 7541), each of which ends the connection."""

from __future__ import annotations

from ctrlmgr.http.http2.frames import Code
from tests.http.http2.h2spec.peer import Case, Peer, assert_conforms, connection_error, each_of, fields

FAILS = connection_error(Code.COMPRESSION_ERROR)
NAME = b"\x00\x85\xf2\xb2\x4a\x84\xff"


def case_of(section: str, says: str, *, before: bytes = b"", after: bytes = b"") -> Case:
    def send(peer: Peer) -> None:
        peer.headers(before + peer.block(fields()) + after)

    return Case(section, says, send, FAILS)


CASES = [
    case_of("2.3.3", "an indexed field of an invalid index", after=b"\xc6"),
    case_of("2.3.3", "a literal field of an invalid index", after=b"\x7f\x07\x00"),
    case_of("4.2", "an update of the table's size at the end of a block", after=b"\x21"),
    case_of("5.2", "padding of more than 7 bits", after=NAME + b"\x84\x49\x50\x9f\xff"),
    case_of("5.2", "padding of zeros", after=NAME + b"\x83\x49\x50\x90"),
    case_of("5.2", "the end of a string within it", after=NAME + b"\x87\x49\x51\xff\xff\xff\xfa\x7f"),
    case_of("6.1", "an indexed field of index 0", after=b"\x80"),
    case_of("6.3", "an update of the table's size beyond its limit", before=b"\x21"),
]


@each_of(CASES)
def test_the_server_refuses(case: Case) -> None:
    assert_conforms(case)


def test_a_table_above_the_default_size_is_refused_before_the_settings_acknowledgement() -> None:
    case = case_of("6.3", "an update beyond 4,096", before=b"\x3f\xe2\x1f")
    assert_conforms(case._replace(acknowledges=False))
