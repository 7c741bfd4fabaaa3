"""Tests of the example operator in the harness: the scenario, and all possible orders of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr import Invalid
from ctrlmgr.testing import Harness, every_interleaving
from examples.shop import ConfigMap, Shop, app
from tests.framework.shops import SHOP, check_scenario


class HarnessCluster:
    def __init__(self) -> None:
        self.harness = Harness(app)

    def create(self, obj: Mapping[str, Any]) -> None:
        self.harness.create(obj)

    def patch(self, kind: str, name: str, patch: Mapping[str, Any]) -> None:
        self.harness.patch(kind, name, patch)

    def delete(self, kind: str, name: str) -> None:
        self.harness.delete(kind, name)

    def get(self, kind: str, name: str) -> Any:
        found = self.harness.get(kind, name)
        return found and found.fields

    def refusal(self, obj: Mapping[str, Any]) -> str:
        with pytest.raises(Invalid) as refused:
            self.harness.create(obj)
        return str(refused.value)

    def eventually(self, holds: Callable[[], bool]) -> None:
        self.harness.settle()
        assert holds()


def test_the_example_operator_runs_in_the_harness() -> None:
    check_scenario(HarnessCluster())


def test_the_end_state_is_independent_of_the_order() -> None:
    def make() -> Harness:
        harness = Harness(app)
        harness.create(SHOP)
        harness.settle()
        return harness

    changes: list[Callable[[Harness], object]] = [
        lambda harness: harness.patch(Shop, "corner", {"spec": {"currency": "SEK"}}),
        lambda harness: harness.patch(Shop, "corner", {"spec": {"prices": {"tea": 9}}}),
    ]
    ends = [(harness.state(), order) for harness, order in every_interleaving(make, changes)]
    assert len(ends) > 5
    assert len({tuple(order) for _, order in ends}) == len(ends)
    assert all(state == ends[0][0] for state, _ in ends)
    last = ends[0][0]["configmaps default/corner-prices"]
    assert last["data"] == {"tea": "9 SEK", "milk": "2 SEK"}


def test_too_many_orders_are_refused() -> None:
    changes: list[Callable[[Harness], object]] = [
        lambda harness: harness.create(SHOP),
        lambda harness: harness.delete(Shop, "corner"),
    ]
    with pytest.raises(AssertionError, match="more than 1 orders"):
        list(every_interleaving(lambda: Harness(app), changes, most=1))


def test_unchanged_objects_are_not_written() -> None:
    harness = Harness(app)
    harness.create(SHOP)
    harness.settle()
    before = harness.event_log.head().revision
    harness.restart()
    harness.settle()
    harness.patch(Shop, "corner", {"metadata": {"labels": {"a": "b"}}})
    harness.settle()
    assert harness.event_log.head().revision == before + 1


def test_the_example_is_readable() -> None:
    shown = harness_text()
    assert len(shown) <= 25


def harness_text() -> list[str]:
    text = (Path(__file__).parents[2] / "examples" / "limits_controller.py").read_text()
    body = text.split('"""', 2)[2].split("if __name__")[0]
    return [line for line in body.splitlines() if line.strip()]


def test_objects_are_read_as_their_classes() -> None:
    harness = Harness(app)
    harness.create(SHOP)
    harness.settle()
    shop, prices = harness.get(Shop, "corner"), harness.get(ConfigMap, "corner-prices")
    assert shop is not None
    assert prices is not None
    assert (shop.spec.currency, shop.status.prices, prices.data["tea"]) == ("EUR", 2, "3 EUR")
