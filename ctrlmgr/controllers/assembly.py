"""Assembles a controller from its reconciler, its watches and the process's context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.descriptor import ControllerContext, ControllerDescriptor
from ctrlmgr.manager import Controller, Reconciler, Watch
from ctrlmgr.workqueue import RateLimiter


def assemble(
    descriptor: ControllerDescriptor[Any],
    context: ControllerContext,
    reconciler: Reconciler[EngineClient],
    watches: Sequence[Watch] = (),
    *,
    workers: int = 1,
    max_retries: int | None = None,
    limiter: RateLimiter[Key] | None = None,
    reads_own_writes: bool = False,
    canonical: bool = False,
    kind: str = "",
) -> Controller:
    """Return the controller that `descriptor` declares; the caller must do this before the informers sync.

    The controller writes as the descriptor's user. If `reads_own_writes` is set, the reconcile of a key waits until the
    caches contain the writes of the key's previous reconcile. `ControllerContext.client` documents the argument
    `canonical`. `Controller` documents the other arguments.
    """
    informers = context.informers
    return Controller(
        descriptor.name,
        reconciler,
        watches=watches,
        client=context.client(descriptor, canonical=canonical),
        log=context.event_log,
        clock=context.clock,
        random=context.random,
        workers=workers,
        max_retries=max_retries,
        limiter=limiter,
        seen=(lambda: informers.revision) if reads_own_writes else None,
        kind=kind,
    )
