"""Merges repeated occurrences into one Event with a series, as kube-scheduler's recorder does.

Guarantees, all as in client-go (`tools/events/event_broadcaster.go`):
- Two occurrences are equal if their type, action, reason, reporter, related object and subject are equal. The resource
  version of the subject must also be equal. The messages of equal occurrences may differ; the Event keeps the first
  message.
- The recorder writes the first occurrence as an Event. The second occurrence adds a series with the count 2 to the
  Event. Later occurrences only increment a count in memory.
- A series is written again every 30 minutes, and a last time six minutes after its latest occurrence. After the end of
  the series, or six minutes after an occurrence that was not repeated, the same occurrence becomes a new Event.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from ctrlmgr.client import PatchClient
from ctrlmgr.controllers.events.event_correlation import Occurrence

FINISH: Final = 360.0
"""The number of seconds without another occurrence after which a series ends. The correlator checks for ended series at
the same interval (`finishTime`).
"""
REFRESH: Final = 1800.0
"""The number of seconds between two writes of every series (`refreshTime`)."""

_MICROSECONDS: Final = 1_000_000


class Series(NamedTuple):
    """An Event of the newer API.

    The Event contains the first occurrence, the number of occurrences, and the time of the latest occurrence.
    """

    first: Occurrence
    times: int
    latest: int
    """The time of the latest occurrence, in microseconds since 1970."""

    @property
    def occurrence(self) -> Occurrence:
        """The occurrence that the Event describes."""
        return self.first

    @property
    def name(self) -> str:
        """The name of the Event."""
        return self.first.name


class _Known(NamedTuple):
    series: Series
    client: PatchClient


class SeriesCorrelator:
    """Counts repeated occurrences; only one thread may use an instance at a time."""

    def __init__(self, now: float) -> None:
        """Create an instance without any series; `now` is in monotonic seconds."""
        self._known: dict[Hashable, _Known] = {}
        self._finish_at = now + FINISH
        self._refresh_at = now + REFRESH

    def correlate(self, occurrence: Occurrence, client: PatchClient) -> Series | None:
        """Return the Event to write through `client`; None if the occurrence is only counted."""
        key = (
            occurrence.type,
            occurrence.action,
            occurrence.reason,
            occurrence.component,
            occurrence.instance,
            occurrence.subject,
            occurrence.related,
        )
        before = self._known.get(key)
        if before is None:
            series = Series(occurrence, 1, occurrence.at)
        else:
            series = before.series._replace(times=before.series.times + 1, latest=occurrence.at)
        self._known[key] = _Known(series, client)
        return series if series.times <= 2 else None

    def due(self, now: float, at: int) -> list[tuple[Series, PatchClient]]:
        """Return the Events whose series must be written now.

        `now` is in monotonic seconds, and `at` is the same time in microseconds since 1970.
        """
        written: list[_Known] = []
        if now >= self._refresh_at:
            self._refresh_at = now + REFRESH
            written += [each for each in self._known.values() if each.series.times > 1]
        if now >= self._finish_at:
            self._finish_at = now + FINISH
            written += self._finished(at - round(FINISH * _MICROSECONDS))
        return [(each.series, each.client) for each in written]

    def _finished(self, before: int) -> list[_Known]:
        """Remove the Events whose latest occurrence was before `before`.

        Return those removed Events that have a series.
        """
        ended = {key: each for key, each in self._known.items() if each.series.latest < before}
        for key in ended:
            del self._known[key]
        return [each for each in ended.values() if each.series.times > 1]
