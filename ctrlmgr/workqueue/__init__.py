"""The queue between changes and reconciles: client-go's `util/workqueue`, controller-runtime's `priorityqueue`.

Guarantees:
- **Never twice at once.** An item that one worker has is given to no other until it is done.
- **Stingy.** However often an item is added while it waits, it is processed once for all of it.
- **Re-entrant.** An item added while it is being processed is processed again afterwards, so no change is missed.
- **By priority.** The item with the highest priority is handed out first. An item's priority only rises while it waits,
  and an item that is added again while it is being processed waits with the highest priority that it was added with.
- **Fair.** Within a priority, namespaces take turns, and a namespace's items are handed out in the order they became
  ready. Items of a low priority are handed out even if items of a higher priority wait all the time (`ready`).
- **Prompt.** An item that is ready is handed out as soon as a worker asks: no timer holds it back.
- **Accountable.** Beyond client-go: a delivery names every revision that was coalesced into it, none lost, none twice.
- **Drainable.** `shut_down` ends the workers once the queue is empty, and can wait for what they hold.

`queue` is dedupe and delivery, `ready` the order of delivery, `priority` the priorities, `delays` what is added later,
`rate_limiter` how long a failed item waits.
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
