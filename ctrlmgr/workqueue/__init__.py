"""The queue between changes and reconciles, like client-go's `util/workqueue` and controller-runtime's `priorityqueue`.

Guarantees:
- **Never twice at once.** While one worker processes an item, no other worker receives it.
- **Stingy.** An item that is added several times before a worker takes the item is processed once.
- **Re-entrant.** If an item is added while a worker processes the item, the item is processed again afterwards, so that
  the controller misses no change.
- **By priority.** The queue delivers the item with the highest priority first. The priority of a waiting item can rise,
  but not fall. An item that is added again while a worker processes the item waits with the highest of its new
  priorities.
- **Fair.** Within a priority, namespaces take turns, and the queue delivers the items of a namespace in the order in
  which the items became ready. The queue also delivers items of a low priority while items of a higher priority always
  wait (`ready`).
- **Prompt.** The queue delivers a ready item as soon as a worker calls `get`; no timer delays the item.
- **Accountable.** Unlike in client-go, a delivery contains each revision for which the item was added, exactly once.
- **Drainable.** After `shut_down`, the workers end as soon as the queue is empty; `shut_down` can wait until no item is
  in progress.

`queue` deduplicates and delivers items, `ready` orders the delivery, and `priority` defines the priorities. `delays`
stores the items that become ready later, and `rate_limiter` decides how long a failed item waits before the retry.
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
