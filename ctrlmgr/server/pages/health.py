"""Runs health checks, and formats their results as kube-apiserver does.

Guarantees:
- A health check never blocks, because the check only reads a result that another thread has stored. `LogProbe` queries
  the database on its own thread.
- The response about all checks names the failed checks but not the reasons ("reason withheld"), because this response
  is often public. The response about a single check, and the log, contain the reason of the check's failure (apiserver
  `pkg/server/healthz/healthz.go`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import structlog

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.eventlog import EventLog

log = structlog.get_logger(__name__)

_PROBE_EVERY = 1.0
_TOO_OLD = 5.0
_SHOWN = 3
"""The maximum number of failed checks that one log line names."""


class Check(NamedTuple):
    """A named health check; `problem` returns None if the check passes, otherwise the reason of the failure."""

    name: str
    problem: Callable[[], str | None]


PING = Check("ping", lambda: None)
"""A health check that always passes, because the process responds."""


def after_grace(checks: Iterable[Check], seconds: float, clock: Clock) -> list[Check]:
    """Return checks that pass, regardless of problems, until the given time is over (`delayedHealthCheck`)."""
    ends_at = clock.monotonic() + seconds

    def later(problem: Callable[[], str | None]) -> str | None:
        return None if clock.monotonic() < ends_at else problem()

    return [Check(each.name, partial(later, each.problem)) for each in checks]


@dataclass(slots=True)
class Counts:
    """The numbers of passes and failures of a health check, and the check's last result."""

    passed: int = 0
    failed: int = 0
    is_passing: bool = False

    def add(self, *, passes: bool) -> None:
        """Count one result of the health check."""
        self.is_passing = passes
        if passes:
            self.passed += 1
        else:
            self.failed += 1


@dataclass
class Health:
    """The health checks of an endpoint such as `readyz`."""

    name: str
    checks: Sequence[Check]
    counts: dict[str, Counts] = field(default_factory=dict, init=False)
    """The results of each health check that `report` has run, by the check's name."""
    _has_passed: bool = field(default=False, init=False)

    def report(self, *, verbose: bool, exclude: Collection[str] = ()) -> tuple[bool, str]:
        """Run the health checks.

        The method returns whether all checks pass, and the text of the response; the text lists all checks if a check
        failed.
        """
        lines: list[str] = []
        failed: dict[str, str] = {}
        for check in self.checks:
            if check.name in exclude:
                lines.append(f"[+]{check.name} excluded: ok")
                continue
            problem = check.problem()
            self.counts.setdefault(check.name, Counts()).add(passes=not problem)
            if problem:
                failed[check.name] = problem
                lines.append(f"[-]{check.name} failed: reason withheld")
            else:
                lines.append(f"[+]{check.name} ok")
        if unmatched := sorted(set(exclude) - {check.name for check in self.checks}):
            names = ", ".join(f'"{name}"' for name in unmatched)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            self._log(failed)
            return False, "\n".join([*lines, f"{self.name} check failed", ""])
        self._has_passed = True
        return True, "\n".join([*lines, f"{self.name} check passed", ""]) if verbose else "ok"

    def _log(self, failed: Mapping[str, str]) -> None:
        """Log the first failed checks.

        The log level is debug while the process starts, because failures are expected.
        """
        log_event = log.info if self._has_passed else log.debug
        shown = dict(itertools.islice(failed.items(), _SHOWN))
        more = {"more": len(failed) - _SHOWN} if len(failed) > _SHOWN else {}
        log_event("health check failed", endpoint=self.name, **shown, **more)

    def report_one(self, name: str) -> tuple[bool, str] | None:
        """Run one health check; return None if the endpoint does not have this check."""
        for check in self.checks:
            if check.name == name:
                problem = check.problem()
                return (False, f"internal server error: {problem}\n") if problem else (True, "ok")
        return None


class LogProbe:
    """A `Runnable` that reads the log's head once a second, so that health checks need not wait for the database."""

    name = "log probe"

    def __init__(self, event_log: EventLog, *, clock: Clock) -> None:
        """Create a probe that reads the head of `event_log`."""
        self._log = event_log
        self._clock = clock
        self._reached_at = clock.monotonic()
        self._problem: str | None = None

    def run(self, stop: threading.Event) -> None:
        """Read the log's head once a second until `stop` is set."""
        while not stop.is_set():
            self.probe()
            stop.wait(_PROBE_EVERY)

    def probe(self) -> None:
        """Read the log's head once, and store the result for health checks."""
        try:
            self._log.head()
        except CtrlmgrError as error:
            self._problem = str(error)
        else:
            self._problem = None
            self._reached_at = self._clock.monotonic()

    def problem(self) -> str | None:
        """Return None if the log has responded recently; otherwise return the problem, even if the database hangs."""
        if self._problem:
            return self._problem
        silence = self._clock.monotonic() - self._reached_at
        return f"the log has not answered for {silence:.0f} s" if silence > _TOO_OLD else None
