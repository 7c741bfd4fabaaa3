"""Limits the number of requests that a serving process handles at a time, as the settings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.server import Backend
from ctrlmgr.server.fairness.fairness_filter import Fairness
from ctrlmgr.server.fairness.fairness_metrics import FAIRNESS
from ctrlmgr.server.fairness.fairness_pages import fairness_pages
from ctrlmgr.server.filters.in_flight_limits import InFlightLimits
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.request_chain import Limits
from ctrlmgr.settings.server_settings import ServerSettings


@dataclass(frozen=True)
class Limiting:
    """The request limits of a process, with their status pages and periodic functions."""

    limits: Limits
    pages: Mapping[str, Page] = field(default_factory=dict)
    """Pages that show the state of the request limits, by path."""
    housekeeping: Sequence[Callable[[], object]] = ()
    """Functions that the server must call about once a second."""


def new_limiting(settings: ServerSettings, backend: Backend, *, clock: Clock) -> Limiting:
    """Return the request limits that the settings configure; raises `SettingsError` if these settings are invalid."""
    if not settings.priority_and_fairness:
        return Limiting(InFlightLimits(settings.max_reads, settings.max_writes))
    total = settings.max_reads + settings.max_writes
    if not total:
        raise SettingsError(
            "server.max_reads + server.max_writes must be greater than 0 while server.priority_and_fairness is true"
        )
    fairness = Fairness(total, backend.engine.cacher, clock=clock, patience=settings.request_timeout / 4)
    FAIRNESS.levels = fairness.levels
    return Limiting(fairness, fairness_pages(fairness.levels, clock), [fairness.tick])
