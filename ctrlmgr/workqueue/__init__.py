"""The queue between changes and reconciles, like client-go's `util/workqueue` and controller-runtime's `priorityqueue`.

Guarantees:
- **Never twice at once.** While one worker processes an item, no other worker receives it.
- **Stingy.** An item that is added several times while it waits is processed once.
- **Re-entrant.** If an item is added while it is being processed, it is processed again afterwards, so that no change
  is missed.
- **By priority.** The item with the highest priority is handed out first. The priority of an item only rises while the
  item waits. If an item is added again while it is being processed, it then waits with the highest priority with which
  it was added.
- **Fair.** Within a priority, namespaces take turns, and the items of a namespace are handed out in the order in which
  they became ready. Items of a low priority are handed out even if items of a higher priority are always waiting
  (`ready`).
- **Prompt.** An item that is ready is handed out as soon as a worker calls `get`; no timer delays it.
- **Accountable.** Unlike in client-go, a delivery contains every revision that was coalesced into it, each exactly
  once.
- **Drainable.** `shut_down` ends the workers once the queue is empty, and can wait until the items in progress are
  done.

`queue` deduplicates and delivers items, `ready` orders the delivery, and `priority` defines the priorities. `delays`
stores items that are added later, and `rate_limiter` decides how long a failed item waits.
"""

from ctrlmgr.workqueue.priority import CHANGE, LOW, URGENT
from ctrlmgr.workqueue.queue import Delivery, WorkQueue
from ctrlmgr.workqueue.rate_limiter import (
    ExponentialBackoff,
    MaxOf,
    RateLimiter,
    TokenBucket,
    default_rate_limiter,
)

__all__ = [
    "CHANGE",
    "LOW",
    "URGENT",
    "Delivery",
    "ExponentialBackoff",
    "MaxOf",
    "RateLimiter",
    "TokenBucket",
    "WorkQueue",
    "default_rate_limiter",
]
