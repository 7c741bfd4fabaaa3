"""Shorthands for taking items from a work queue on the test's own thread."""

from __future__ import annotations

from ctrlmgr.workqueue import Delivery, WorkQueue


def take(queue: WorkQueue[str]) -> Delivery[str]:
    """Take the next ready item; the test fails if no item is ready."""
    delivery = queue.get(timeout=0)
    assert delivery is not None
    return delivery


def finish_all(queue: WorkQueue[str]) -> list[str]:
    """Take and finish all ready items, and return the items in order."""
    items: list[str] = []
    while (delivery := queue.get(timeout=0)) is not None:
        items.append(delivery.item)
        queue.done(delivery.item)
    return items
