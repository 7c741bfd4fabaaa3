"""Compares the Huffman decoder with the library whose tables the decoder uses."""

from __future__ import annotations

import pytest
from hpack import Encoder, HPACKDecodingError
from hpack.huffman_table import decode_huffman
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.http.http2.huffman import decoded


@given(st.binary(max_size=40))
def test_encoded_text_decodes_to_the_same(text: bytes) -> None:
    assert decoded(Encoder().huffman_coder.encode(text)) == text


@given(st.binary(max_size=12))
def test_errors_equal_the_librarys(text: bytes) -> None:
    try:
        expected = decode_huffman(text)
    except HPACKDecodingError:
        with pytest.raises(HPACKDecodingError):
            decoded(text)
    else:
        assert decoded(text) == expected


def test_cached_steps_equal_computed_steps() -> None:
    code = Encoder().huffman_coder.encode(bytes(range(256)))
    assert decoded(code) == decoded(code) == bytes(range(256))
