"""Tests of lists that clients request more than once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.server.presenting import encoding
from ctrlmgr.server.presenting.listings import Listings
from tests.server.presenting.test_encoding import HEAD, TYPE_META, thing

HUNDRED = [thing(number, "x" * 1000) for number in range(1, 101)]


def whole(listings: Listings, objects: Sequence[Object], head: bytes = HEAD) -> bytes:
    return b"".join(listings.pieces(head, objects, TYPE_META))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of objects in each list that the server encoded."""
    sizes: list[int] = []
    items = encoding.items

    def noting(head: bytes, objects: Sequence[Object], type_meta: bytes) -> object:
        sizes.append(len(objects))
        return items(head, objects, type_meta)

    monkeypatch.setattr(encoding, "items", noting)
    return sizes


@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_cached_list_equals_a_new_one(count: int) -> None:
    listings = Listings()
    expected = b"".join(encoding.items(HEAD, HUNDRED[:count], TYPE_META))
    assert [whole(listings, HUNDRED[:count]) for _ in range(2)] == [expected] * 2


def test_items_are_joined_once_for_all_list_metadata(made: list[int]) -> None:
    listings = Listings()
    first = whole(listings, HUNDRED)
    later = whole(listings, list(HUNDRED), HEAD.replace(b'"99"', b'"100"'))
    assert (made, later) == ([100], first.replace(b'"99"', b'"100"', 1))


def test_a_change_is_visible_in_the_list(made: list[int]) -> None:
    listings = Listings()
    whole(listings, HUNDRED)
    changed = [*HUNDRED[:50], thing(51, "y" * 1000), *HUNDRED[51:]]
    assert b"y" * 1000 in whole(listings, changed)
    assert b"y" * 1000 not in whole(listings, HUNDRED)
    assert made == [100, 100, 100]


def test_a_too_large_list_is_encoded_piece_by_piece(made: list[int]) -> None:
    listings = Listings(largest=50_000)
    pieces = listings.pieces(HEAD, HUNDRED, TYPE_META)
    assert not isinstance(pieces, Sequence)
    assert b"".join(pieces) == whole(listings, HUNDRED)
    assert made == [100, 100]


def test_the_least_recently_requested_list_is_evicted(made: list[int]) -> None:
    listings = Listings(budget=250_000)
    first, second, third = HUNDRED, HUNDRED[1:], HUNDRED[2:]
    for objects in (first, second, first, third, first, second):
        whole(listings, objects)
    assert made == [100, 99, 98, 99]
