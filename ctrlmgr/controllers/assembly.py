"""Puts a controller together: what its package has made, in the process that it is to run in."""

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
    """Return the controller that `descriptor` declares, which writes as itself; before the informers sync.

    With `reads_own_writes` a key waits until the caches show what its last reconcile wrote. `canonical` is that of
    `ControllerContext.client`, the others are those of `Controller`.
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
