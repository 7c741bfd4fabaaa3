"""Shorthands for taking from a queue on the test's own thread."""

from __future__ import annotations

from ctrlmgr.workqueue import Delivery, WorkQueue


def take(queue: WorkQueue[str]) -> Delivery[str]:
    """Take what is ready; the test fails if nothing is."""
    delivery = queue.get(timeout=0)
    assert delivery is not None
    return delivery


def finish_all(queue: WorkQueue[str]) -> list[str]:
    """Take and finish everything ready, and name it in the order it came."""
    items: list[str] = []
    while (delivery := queue.get(timeout=0)) is not None:
        items.append(delivery.item)
        queue.done(delivery.item)
    return items
