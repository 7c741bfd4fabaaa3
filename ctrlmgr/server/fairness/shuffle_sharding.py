"""Assigns a hand of several queues to each flow by shuffle sharding.

Two flows rarely have the same hand of queues. Therefore, if one flow fills all of its queues, most other flows still
have at least one free queue.

Source: apiserver `pkg/util/shufflesharding/dealer.go` and `pkg/util/flowcontrol/apf_controller.go` (`hashFlowID`).
"""

from __future__ import annotations

from hashlib import sha256


def hash_flow(schema: str, distinguisher: str) -> int:
    """Return the hash of a flow, a number of 64 bits."""
    digest = sha256(b"%b\0%b" % (schema.encode(), distinguisher.encode())).digest()
    return int.from_bytes(digest[:8], "little")


def deal(hash_value: int, deck: int, hand: int) -> tuple[int, ...]:
    """Return `hand` different numbers, each less than `deck`; `hash_value` determines the numbers."""
    remainders = []
    for dealt in range(hand):
        hash_value, remainder = divmod(hash_value, deck - dealt)
        remainders.append(remainder)
    cards = []
    for position, card in enumerate(remainders):
        for earlier in reversed(remainders[:position]):
            card += card >= earlier
        cards.append(card)
    return tuple(cards)
