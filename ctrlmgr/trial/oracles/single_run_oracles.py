"""Calls all oracles that judge one run without a comparison with another run.

Guarantees: the oracles are pure functions of the kept log and the run record. The findings of one oracle follow the
order of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import EventLog
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.conversion_losses import conversion_losses
from ctrlmgr.trial.oracles.data_deletions import data_deletions, data_overwrites
from ctrlmgr.trial.oracles.endless_writing import endless_writing, field_fights, growing_generations
from ctrlmgr.trial.oracles.generation_reports import observed_generations
from ctrlmgr.trial.oracles.kept_log import KeptLog, read
from ctrlmgr.trial.oracles.leaked_objects import endless_deletions, leaked_objects
from ctrlmgr.trial.oracles.owner_gone import owner_gone
from ctrlmgr.trial.oracles.process_health import panics, process_ended
from ctrlmgr.trial.oracles.recovery import recovery
from ctrlmgr.trial.oracles.user_checks import Checks
from ctrlmgr.trial.run_record import RunRecord, opened_log

Oracle = Callable[[KeptLog], list[Finding]]

ORACLES: Final[Mapping[str, Oracle]] = {
    "process-ended": process_ended,
    "panic": panics,
    "owner-gone": owner_gone,
    "leaked-object": leaked_objects,
    "deletion-never-ends": endless_deletions,
    "endless-writing": endless_writing,
    "growing-generation": growing_generations,
    "field-fight": field_fights,
    "observed-generation": observed_generations,
    "data-deleted": data_deletions,
    "data-overwritten": data_overwrites,
    "no-recovery": recovery,
    "conversion-loss": conversion_losses,
}
"""The oracles by the name that their findings have."""


class SingleRunOracles:
    """All oracles together, as a trial calls them."""

    def __init__(self, checks: Checks = Checks(), *, clock: Clock) -> None:  # noqa: B008  # immutable
        """Judge runs with the oracles, and with the checks of the user."""
        self._checks = checks
        self._clock = clock

    def __call__(self, record: RunRecord) -> list[Finding]:
        """Return the findings about a run, whose log is in the folder of the run."""
        with opened_log(record.folder, clock=self._clock) as log:
            return judge(log, record, self._checks)


def judge(log: EventLog, record: RunRecord, checks: Checks = Checks()) -> list[Finding]:  # noqa: B008  # immutable
    """Return the findings of all oracles, and of the user's checks, about one run."""
    kept = read(log, record)
    return [*(finding for oracle in ORACLES.values() for finding in oracle(kept)), *checks.run(kept)]
