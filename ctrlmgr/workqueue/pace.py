"""A pace: a queue that much is added to hands out less often, so that changes gather.

Guarantees:
- What is added alone, or with few others, is handed out at once.
- While more is added all the time, with never a pause of `lull`, one item is handed out every `interval`, the one that
  has waited longest; whatever else is asked of it meanwhile is answered with it. So an item waits for `most` times
  `interval` at most.
- When no more is added, everything is handed out as fast as it is taken; so is what is more than `most`, and so
  after a burst no more is left to be done than that.

A controller that writes an object anew with each of many changes does well with one: while requests come as fast as
they can be answered, what it would write is out of date before it has been read, and takes from them what it costs.
Kubernetes' controllers come to as many writes, as their clients let 20 requests a second through (`--kube-api-qps`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """When a queue holds back; see the module's docstring. Moments and durations are in seconds."""

    fewest: int = 8
    """Items that wait before any is held back."""
    most: int = 200
    """Items that are held back at most."""
    interval: float = 0.025
    """How long after the last one the next is handed out."""
    lull: float = 0.05
    """How long nothing must have been added for the rest to be handed out."""
    patience: float = 1.0
    """How long what is added to be had when it is calm (`WorkQueue.add_when_calm`) waits at most, while such items come
    all the time, `fewest` of them or more."""

    def holds_until(self, waiting: int, handed_out_at: float, added_at: float) -> float:
        """Return the moment from which on an item may be had, when so many wait; it may have passed.

        The last item was handed out at `handed_out_at`, and the last one added at `added_at`, if it waited already.
        """
        if not self.fewest <= waiting <= self.most:
            return added_at
        return min(handed_out_at + self.interval, added_at + self.lull)
