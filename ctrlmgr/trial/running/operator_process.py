"""The operator's process: it is started, killed, and started again, as a Deployment would do.

Guarantees:
- The operator and its child processes are one process group, and are killed together.
- `crash` returns after the process has ended, and after `on_death` has returned; only then the operator starts again.
- The trial restarts an operator that exits unexpectedly, with growing delays, until the operator has exited too often.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from ctrlmgr import threads
from ctrlmgr.clock import Clock
from ctrlmgr.trial.run_record import OperatorExit

_FIRST_DELAY = 0.5
_MOST_EXITS = 5
_GRACE = 5.0


class OperatorProcess:
    """One operator in one run; thread-safe."""

    def __init__(
        self,
        command: str,
        environment: Mapping[str, str],
        output: Path,
        on_death: Callable[[], None],
        head: Callable[[], int],
        *,
        clock: Clock,
    ) -> None:
        """Prepare to run a shell `command` with additional variables; the output is appended to the file `output`.

        `on_death` is called after each end of the process; `head` returns the newest revision of the log.
        """
        self._command = command
        self._environment = environment
        self._output = output
        self._on_death = on_death
        self._head = head
        self._clock = clock
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopping = False
        self._is_crashing = False
        self._exits: list[OperatorExit] = []
        self._has_given_up = False

    @property
    def exits(self) -> tuple[OperatorExit, ...]:
        """All ends of the process so far."""
        with self._changed:
            return tuple(self._exits)

    @property
    def has_given_up(self) -> bool:
        """Whether the trial no longer restarts the operator, because the operator exited unexpectedly too often."""
        return self._has_given_up

    def start(self) -> None:
        """Start the operator."""
        threads.start("trial-operator", self._supervise)
        with self._changed:
            while self._process is None and not self._has_given_up:
                self._clock.wait(self._changed, None)

    def crash(self) -> None:
        """Kill the operator; it is started again."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the operator for good: ask it to end, and kill it after a timeout."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        """Send a signal, and wait for the end of the process; kill it after a timeout."""
        with self._changed:
            if (process := self._process) is None:
                return
            self._is_crashing = True
            count = len(self._exits)
            _signal(process, number)
            deadline = self._clock.monotonic() + _GRACE
            while len(self._exits) == count:
                if not self._clock.wait(self._changed, max(deadline - self._clock.monotonic(), 0.05)):
                    _signal(process, signal.SIGKILL)

    def _supervise(self) -> None:
        delay = _FIRST_DELAY
        own_exits = 0
        while not self._is_stopping:
            by_trial = self._run_once()
            if by_trial:
                continue
            own_exits += 1
            if own_exits == _MOST_EXITS:
                break
            self._pause(delay)
            delay *= 2
        with self._changed:
            self._has_given_up = True
            self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        """Wait before the next start; `stop` ends the wait."""
        until = self._clock.monotonic() + seconds
        with self._changed:
            while (left := until - self._clock.monotonic()) > 0:
                if self._is_stopping:
                    return
                self._clock.wait(self._changed, left)

    def _run_once(self) -> bool:
        """Run the process until it ends; return whether the trial ended it."""
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                self._command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        with self._changed:
            self._process = process
            self._changed.notify_all()
        if self._is_stopping:  # `stop` was called while the process started
            _signal(process, signal.SIGKILL)
        code = process.wait()
        _signal(process, signal.SIGKILL)  # its children
        self._on_death()
        with self._changed:
            by_trial, self._is_crashing = self._is_crashing or self._is_stopping, False
            self._process = None
            self._exits.append(OperatorExit(code, by_trial, self._head()))
            self._changed.notify_all()
        return by_trial


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the group has ended
        os.killpg(process.pid, number)
