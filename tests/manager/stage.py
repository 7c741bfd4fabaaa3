"""A stage with everything that a controller needs, in memory and driven by one thread."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import Client, LogClient
from ctrlmgr.eventlog import Author
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import Change, EventWindow, Informers
from ctrlmgr.manager import Controller, Reconciler, Result, Watch
from ctrlmgr.testing import FakeClock

A, B = Key("default", "a"), Key("default", "b")


def pod(name: str, *, note: str = "", namespace: str = "default") -> Object:
    return Object.from_dict(
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, "note": note}
    )


def config_map(name: str) -> Object:
    return Object.from_dict(
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}}
    )


class ScriptedReconciler:
    """A reconciler that returns programmed results, and records its calls."""

    def __init__(self, *acts: Callable[[Key, Client], Result | None]) -> None:
        self.acts = list(acts)
        self.keys: list[Key] = []

    def reconcile(self, key: Key, client: Client) -> Result | None:
        self.keys.append(key)
        return self.acts.pop(0)(key, client) if self.acts else None


def fails(error: BaseException) -> Callable[[Key, Client], Result | None]:
    def act(key: Key, client: Client) -> Result | None:
        raise error

    return act


def creates(name: str) -> Callable[[Key, Client], Result | None]:
    def act(key: Key, client: Client) -> Result | None:
        client.create(config_map(name))
        return None

    return act


def then(*acts: Callable[[Key, Client], Result | None]) -> Callable[[Key, Client], Result | None]:
    def act(key: Key, client: Client) -> Result | None:
        result = None
        for each in acts:
            result = each(key, client)
        return result

    return act


class Stage:
    """A log, the caches of the log, and a controller that reconciles each pod under the pod's own key."""

    def __init__(
        self,
        reconciler: Reconciler[Any],
        *,
        name: str = "staged",
        delay: float = 0.0,
        after_sync: bool = False,
        is_urgent: Callable[[Change], bool] | None = None,
        workers: int = 1,
        max_retries: int | None = None,
        sees_own_writes: bool = False,
    ) -> None:
        uids = count(1)
        self.clock = FakeClock()
        self.log = MemoryEventLog(clock=self.clock, random=Random(1))
        self.client = LogClient(
            self.log, author=Author("tester"), clock=self.clock, new_uid=lambda: f"uid-{next(uids)}"
        )
        self.informers = Informers(self.log, EventWindow(self.log, clock=self.clock), clock=self.clock)
        pods = self.informers.informer(PODS)
        self.controller = Controller(
            name,
            reconciler,
            watches=[Watch(pods, lambda change: [change.new.key if change.new else A], delay, after_sync, is_urgent)],
            client=self.client,
            log=self.log,
            clock=self.clock,
            random=Random(2),
            workers=workers,
            max_retries=max_retries,
            seen=(lambda: self.informers.revision) if sees_own_writes else None,
        )

    def process_all(self) -> int:
        """Update the caches and reconcile the ready keys; return the number of reconciles."""
        while self.informers.step():
            pass
        processed = 0
        while self.controller.process_next(timeout=0):
            processed += 1
        return processed
