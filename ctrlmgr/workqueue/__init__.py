"""The queue between what changed and who makes it so (client-go's `util/workqueue`).

Guarantees:
- **Never twice at once.** An item that one worker has is given to no other until it is done.
- **Stingy.** However often an item is added while it waits, it is processed once for all of it.
- **Re-entrant.** An item added while it is being processed is processed again afterwards, so no change is missed.
- **Fair.** Items are handed out in the order they became ready.
- **Accountable.** Beyond client-go: a delivery names every revision that was coalesced into it, none lost, none twice.
- **Drainable.** `shut_down` ends the workers once the queue is empty, and can wait for what they hold.

`queue` is dedupe, delays and delivery; `rate_limiter` is how long a failed item waits, `pace` whether items wait for
others while a queue is busy, `crowd` what waits until no more like it come.
"""

from ctrlmgr.workqueue.pace import Pace
from ctrlmgr.workqueue.queue import Delivery, WorkQueue
from ctrlmgr.workqueue.rate_limiter import (
    ExponentialBackoff,
    MaxOf,
    RateLimiter,
    TokenBucket,
    default_rate_limiter,
)

__all__ = [
    "Delivery",
    "ExponentialBackoff",
    "MaxOf",
    "Pace",
    "RateLimiter",
    "TokenBucket",
    "WorkQueue",
    "default_rate_limiter",
]
