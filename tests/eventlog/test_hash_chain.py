from __future__ import annotations

from dataclasses import dataclass

import pytest

from ctrlmgr.eventlog.hash_chain import GENESIS, Stamp, content_digest, link

PLACE = ("pods", "shop", "a")
STAMP = Stamp(1_700_000_000_000_000, "alice", "kubectl", 3, 77, 99)


def test_the_format_never_changes() -> None:
    # Existing logs are verified with this value: a new format needs a new kind of chain, and must not change this
    # number.
    digest = content_digest(PLACE, b'{"a":1}', 2, STAMP)
    assert digest.hex() == "5f251878ce87c18302a8324a6b3c56f101706cd762553ea50c4ca21562e43512"
    assert link(GENESIS, 1, 0, digest).hex() == "2d9bb1b7138057721d324ea63ef3e68da48394505f4420542f35031965ce98b2"


@dataclass
class Content:
    place: tuple[str, str, str] = PLACE
    body: bytes = b"{}"
    type: int = 1
    stamp: Stamp = STAMP

    def digest(self) -> bytes:
        return content_digest(self.place, self.body, self.type, self.stamp)


@pytest.mark.parametrize(
    "other",
    [
        Content(place=("pod", "sshop", "a")),
        Content(place=("pods", "sho", "pa")),
        Content(body=b"{ }"),
        Content(type=2),
        *(Content(stamp=STAMP._replace(**{field: value + type(value)(1)})) for field, value in STAMP._asdict().items()),
        Content(stamp=STAMP._replace(actor="alicekube", user_agent="ctl")),
    ],
    ids=repr,
)
def test_any_difference_changes_the_digest(other: Content) -> None:
    assert other.digest() != Content().digest()


def test_a_link_depends_on_its_parent_position_and_content() -> None:
    links = {
        link(GENESIS, 1, 0, GENESIS),
        link(b"\1" * 32, 1, 0, GENESIS),
        link(GENESIS, 2, 0, GENESIS),
        link(GENESIS, 1, 1, GENESIS),
        link(GENESIS, 1, 0, b"\1" * 32),
    }
    assert len(links) == 5
