"""Repeated occurrences as one Event with a series: what kube-scheduler's recorder does with them.

Guarantees, all of them client-go's (`tools/events/event_broadcaster.go`):
- Two occurrences are the same when type, action, reason, reporter, subject (at the version it was read) and related
  object are equal. Their messages may differ; the Event keeps the first.
- The first occurrence becomes an Event and the second gives it a series of two. Later ones are only counted.
- A series is written again every 30 minutes, and a last time when six minutes have passed since its latest occurrence.
  After that the same occurrence is a new Event, as it is six minutes after one that was never repeated.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from ctrlmgr.client import PatchClient
from ctrlmgr.controllers.events.correlation import Occurrence

FINISH: Final = 360.0
"""Seconds without another occurrence after which a series ends, and between looks for such ones (`finishTime`)."""
REFRESH: Final = 1800.0
"""Seconds between writes of all series (`refreshTime`)."""

_MICROSECONDS: Final = 1_000_000


class Series(NamedTuple):
    """An Event of the newer form: `first` says all but how many `times` and when last."""

    first: Occurrence
    times: int
    latest: int
    """When it happened last, in microseconds since 1970."""

    @property
    def told(self) -> Occurrence:
        """The occurrence that the Event tells of."""
        return self.first

    @property
    def name(self) -> str:
        """The name of the Event."""
        return self.first.name


class _Known(NamedTuple):
    series: Series
    client: PatchClient


class SeriesCorrelator:
    """Counts repeated occurrences; belongs to one thread at a time."""

    def __init__(self, now: float) -> None:
        """Remember nothing yet; `now` is in monotonic seconds."""
        self._known: dict[Hashable, _Known] = {}
        self._finish_at = now + FINISH
        self._refresh_at = now + REFRESH

    def correlate(self, told: Occurrence, client: PatchClient) -> Series | None:
        """Return the Event to write through `client`, None if the occurrence is only counted."""
        key = (told.type, told.action, told.reason, told.component, told.instance, told.subject, told.related)
        before = self._known.get(key)
        if before is None:
            series = Series(told, 1, told.at)
        else:
            series = before.series._replace(times=before.series.times + 1, latest=told.at)
        self._known[key] = _Known(series, client)
        return series if series.times <= 2 else None

    def due(self, now: float, at: int) -> list[tuple[Series, PatchClient]]:
        """Return the series to write at this moment: `now` in monotonic seconds, `at` in microseconds since 1970."""
        written: list[_Known] = []
        if now >= self._refresh_at:
            self._refresh_at = now + REFRESH
            written += [each for each in self._known.values() if each.series.times > 1]
        if now >= self._finish_at:
            self._finish_at = now + FINISH
            written += self._finished(at - round(FINISH * _MICROSECONDS))
        return [(each.series, each.client) for each in written]

    def _finished(self, before: int) -> list[_Known]:
        """Forget the occurrences whose latest was before a moment, and return those that have a series."""
        ended = {key: each for key, each in self._known.items() if each.series.latest < before}
        for key in ended:
            del self._known[key]
        return [each for each in ended.values() if each.series.times > 1]
