"""Tests h2spec's generic part, section 5: every representation of a header field (RFC 7541, section 6) is accepted."""

from __future__ import annotations

from tests.http.http2.h2spec.peer import Case, Peer, answered, assert_conforms, each_of, fields

AGENT, AGENT_CODED = b"\x0auser-agent", b"\x87\xb5\x05\xb1\x61\xcc\x5a\x93"
NAME, NAME_CODED = b"\x06x-test", b"\x85\xf2\xb2\x4a\x84\xff"
VALUE, VALUE_CODED = b"\x06h2spec", b"\x84\x9c\x48\xac\xa4"

INDEXED, NOT_INDEXED, NEVER_INDEXED = b"\x40", b"\x00", b"\x10"

REPRESENTATIONS = {
    "an indexed field": b"\xba",
    "incremental indexing, indexed name": INDEXED + AGENT_CODED + VALUE_CODED,
    "incremental indexing, indexed name (Huffman)": INDEXED + AGENT + VALUE,
    "incremental indexing, new name": INDEXED + NAME + VALUE,
    "incremental indexing, new name (Huffman)": INDEXED + NAME_CODED + VALUE_CODED,
    "without indexing, indexed name": NOT_INDEXED + AGENT + VALUE,
    "without indexing, indexed name (Huffman)": NOT_INDEXED + AGENT_CODED + VALUE_CODED,
    "without indexing, new name": NOT_INDEXED + NAME + VALUE,
    "without indexing, new name (Huffman)": NOT_INDEXED + NAME_CODED + VALUE_CODED,
    "never indexed, indexed name": NEVER_INDEXED + AGENT + VALUE,
    "never indexed, indexed name (Huffman)": NEVER_INDEXED + AGENT_CODED + VALUE_CODED,
    "never indexed, new name": NEVER_INDEXED + NAME + VALUE,
    "never indexed, new name (Huffman)": NEVER_INDEXED + NAME_CODED + VALUE_CODED,
}
"""h2spec sends literals in the cases that it calls indexed, and swaps the names of its first two cases."""


def ask(peer: Peer, before: bytes = b"", after: bytes = b"") -> Peer:
    return peer.headers(before + peer.block(fields("/h2spec")) + after)


def case_of(says: str, representation: bytes) -> Case:
    return Case("5", says, lambda peer: ask(peer, after=representation), answered)


FIELDS = [case_of(*each) for each in REPRESENTATIONS.items()]

UPDATES = [
    Case(
        "5", "an update of the table's size", lambda peer: ask(peer, before=b"\x3f\x61"), answered, acknowledges=False
    ),
    Case("5", "two updates", lambda peer: ask(peer, before=b"\x3f\x61\x3f\xe1\x1f"), answered, acknowledges=False),
]
"""Until the client acknowledges the server's settings, its dynamic header table may have 4,096 bytes; the settings
allow 0 bytes.
"""


@each_of([*FIELDS, *UPDATES])
def test_the_server_accepts(case: Case) -> None:
    assert_conforms(case)
