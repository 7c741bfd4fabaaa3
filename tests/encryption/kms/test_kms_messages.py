from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.encryption.kms.kms_messages import Encrypted, Status, decode_plaintext, encode_plaintext
from ctrlmgr.errors import BadRequest

encrypted_values = st.builds(
    Encrypted, st.binary(max_size=200), st.text(max_size=200), st.dictionaries(st.text(max_size=20), st.binary())
)


@given(encrypted_values)
def test_an_encrypted_value_is_the_same_after_each_message(value: Encrypted) -> None:
    assert Encrypted.decode(value.encode()) == value
    assert Encrypted.decode_request(value.encode_request("uid")) == value
    assert Encrypted.decode_stored(value.encode_stored()) == value


@given(st.builds(Status, st.text(), st.text(), st.text()))
def test_a_status_is_the_same_after_its_message(status: Status) -> None:
    assert Status.decode(status.encode()) == status


def test_messages_have_the_bytes_of_the_api() -> None:
    assert Status("v2", "ok", "1").encode() == b"\x0a\x02v2\x12\x02ok\x1a\x011"
    assert encode_plaintext(b"ab", "u") == b"\x0a\x02ab\x12\x01u"
    assert decode_plaintext(b"\x12\x01u\x0a\x02ab") == b"ab"
    assert decode_plaintext(b"") == b""
    value = Encrypted(b"c", "k", {"a.b": b"v"})
    assert value.encode() == b"\x0a\x01c\x12\x01k\x1a\x08\x0a\x03a.b\x12\x01v"
    assert value.encode_request("u") == b"\x0a\x01c\x12\x01u\x1a\x01k\x22\x08\x0a\x03a.b\x12\x01v"
    assert value.encode_stored() == b"\x12\x01k\x1a\x01c\x22\x08\x0a\x03a.b\x12\x01v\x28\x01"


def test_unknown_fields_are_ignored() -> None:
    assert Status.decode(b"\x28\x07\x0a\x02v2\x32\x01x") == Status("v2")


def test_a_damaged_message_is_refused() -> None:
    with pytest.raises(BadRequest):
        Encrypted.decode(b"\x0a\x09short")
