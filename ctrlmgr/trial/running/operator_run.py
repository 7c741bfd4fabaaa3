"""One run: a server, the operator behind the proxy, a scenario, and a plan of perturbations.

A run ends early if it has reached the expected end state and is quiet. Otherwise the run ends when the operator has had
time to recover.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import Clock, pause
from ctrlmgr.eventlog import EventLog
from ctrlmgr.trial.oracles.end_state import TOUCHED, Expectation, State, state_of
from ctrlmgr.trial.perturbation_plan import Perturbation, Plan
from ctrlmgr.trial.proxy.operator_proxy import OperatorProxy, Upstream, operator_kubeconfig
from ctrlmgr.trial.proxy.perturber import Hands, LearnedWrite, Perturber
from ctrlmgr.trial.proxy.watch_streams import WatchStreams
from ctrlmgr.trial.run_record import OUTPUT, RunRecord, StepSpan, opened_log
from ctrlmgr.trial.running.administrator import Administrator, StepFailed
from ctrlmgr.trial.running.control_plane import copied, served
from ctrlmgr.trial.running.operator_process import OperatorProcess
from ctrlmgr.trial.running.quiescence import LogFollower
from ctrlmgr.trial.scenario import Apply, Scenario, Wait

KUBECONFIG: Final = "operator.kubeconfig"
_AGAIN: Final = 0.05
_IDLE: Final = 0.3
_START_LIMIT: Final = 15.0
_SHORTEST_QUIET: Final = 1.0


class RunOptions(NamedTuple):
    """The options that all runs of a trial have in common; times are in seconds.

    - `command` is the shell command of the operator, `user` its user, `group` the group of this user.
      An empty group means the groups that the server gives to this user.
    - `prepared` is the folder of the log that each run continues; `server_flags` are flags of its server.
    - `quiet` is the time without changes after which the log is quiet.
    - `recovery` is the time without changes after which a perturbed run ends without the expected end state.
    - `limit` is the maximum time from the last step to the end of a run.
    """

    command: str
    user: str
    group: str
    prepared: Path
    server_flags: tuple[str, ...]
    quiet: float
    recovery: float
    limit: float


class Expectations(NamedTuple):
    """The states that clean runs reach: after each step that waits until the log is quiet, and at the end.

    The keys of `at_waits` are the numbers of the steps.
    """

    at_waits: Mapping[int, Expectation]
    at_end: Expectation


class FinishedRun(NamedTuple):
    """A finished run, and what the proxy has learned in it.

    `at_waits` has the states after the steps that wait until the log is quiet, by the number of the step.
    """

    plan: Plan
    record: RunRecord
    at_waits: Mapping[int, State]
    state: State
    writes: tuple[LearnedWrite, ...]
    rights: tuple[str, ...]
    watched: frozenset[Resource]
    unreached: tuple[Perturbation, ...]


def perform(
    options: RunOptions, scenario: Scenario, plan: Plan, folder: Path, expected: Expectations | None, *, clock: Clock
) -> FinishedRun:
    """Run a scenario with the perturbations of a plan, and keep the run in `folder`."""
    copied(options.prepared, folder)
    with ExitStack() as parts:
        server = parts.enter_context(served(folder, options.server_flags, clock=clock))
        log = parts.enter_context(opened_log(folder, clock=clock))
        upstream = Upstream(server.url, server.trust, _headers(server.token, options))
        run = _Run(options, plan, folder, log, expected, server.kubeconfig, upstream, clock=clock)
        parts.enter_context(run.proxy)
        parts.callback(run.operator.stop)
        return run.perform(scenario)


def _headers(token: str, options: RunOptions) -> Mapping[str, str]:
    """Return the headers with which the proxy sends requests as the operator's user."""
    group = {"Impersonate-Group": options.group} if options.group else {}
    return {"Authorization": f"Bearer {token}", "Impersonate-User": options.user, **group}


class _Run:
    """The parts of one run, connected to each other."""

    def __init__(
        self,
        options: RunOptions,
        plan: Plan,
        folder: Path,
        log: EventLog,
        expected: Expectations | None,
        kubeconfig: Path,
        upstream: Upstream,
        *,
        clock: Clock,
    ) -> None:
        self._options = options
        self._plan = plan
        self._folder = folder
        self._log = log
        self._expected = expected
        self._clock = clock
        self._started_at = log.head().revision
        self._follower = LogFollower(log, clock=clock)
        self._administrator = Administrator(kubeconfig, self._wait_until_quiet, clock=clock)
        self._watches = WatchStreams(clock=clock)
        self._watched: set[Resource] = set()
        hands = Hands(self._crash, self._touch, self._head)
        self._perturber = Perturber(plan, self._watches, hands, clock=clock)
        self.proxy = OperatorProxy(upstream, self._perturber, self._watches, clock=clock)
        self.operator = OperatorProcess(
            options.command,
            {"KUBECONFIG": str(self._write_kubeconfig())},
            folder / OUTPUT,
            self.proxy.cut,
            self._head,
            clock=clock,
        )
        self._step = 0
        """The number of the current step."""
        self._at_waits: dict[int, State] = {}

    def perform(self, scenario: Scenario) -> FinishedRun:
        """Run the scenario, wait for the end, and return the finished run."""
        self.operator.start()
        self._wait_until_started()
        spans: list[StepSpan] = []
        failed = ""
        try:
            spans.extend(self._steps(scenario))
        except StepFailed as error:
            failed = str(error)
        became_quiet = self._wait_for_end()
        ended_at = self._log.head().revision
        self._watched |= self._watches.resources
        self.operator.stop()
        record = RunRecord(
            self._folder,
            self._options.user,
            self._started_at,
            tuple(spans),
            ended_at,
            self.operator.exits,
            became_quiet,
            failed,
        )
        return FinishedRun(
            self._plan,
            record,
            self._at_waits,
            state_of(self._log, self._started_at, ended_at),
            tuple(self._perturber.writes),
            tuple(self._perturber.rights),
            frozenset(self._watched),
            self._perturber.unreached,
        )

    def _steps(self, scenario: Scenario) -> Iterator[StepSpan]:
        hidden = next((each for each in self._plan.perturbations if each.kind == "unobserved"), None)
        lost = {each.step for each in self._plan.perturbations if each.kind == "pods-lost"}
        for number, step in enumerate(scenario.steps, 1):
            self._step = number
            is_hidden = hidden is not None and hidden.step <= number <= hidden.until
            if is_hidden:
                self._watches.hold()
            began = self._log.head().revision
            if not (is_hidden and isinstance(step, Wait)):  # the operator cannot react while it observes nothing
                self._administrator.run(step)
            if hidden is not None and number == hidden.until:
                self._watches.expire()
                self._watches.release()
            if number in lost:
                self._delete_pods(scenario)
            yield StepSpan(began, self._log.head().revision)

    def _delete_pods(self, scenario: Scenario) -> None:
        for namespace in sorted(namespaces_of(scenario)):
            self._administrator.delete_pods(namespace)

    def _wait_until_started(self) -> None:
        """Wait until the operator has read what it needs, and sends no more requests."""
        deadline = self._clock.monotonic() + _START_LIMIT
        while not self._has_started() and self._clock.monotonic() < deadline and not self.operator.has_given_up:
            pause(self._clock, _AGAIN)
        self._watched |= self._watches.resources

    def _has_started(self) -> bool:
        traffic = self.proxy.traffic
        return bool(traffic.of_resources) and traffic.idle_seconds() >= _IDLE

    def _wait_until_quiet(self) -> None:
        """Wait until the operator has reacted to the steps so far."""
        expected = self._expected.at_waits.get(self._step) if self._expected else None
        self._wait_for(expected, self._options.quiet)
        self._at_waits[self._step] = state_of(self._log, self._started_at)

    def _wait_for_end(self) -> bool:
        """Wait until the run has reached its end; return whether it became quiet."""
        if self._expected is None:
            return self._wait_for(None, self._options.quiet)
        return self._wait_for(self._expected.at_end, self._options.recovery)

    def _wait_for(self, expected: Expectation | None, patience: float) -> bool:
        """Wait until the log is quiet, and has the expected state or has been quiet for `patience` seconds.

        Return whether the log became quiet.
        """
        deadline = self._clock.monotonic() + self._options.limit
        compared = _Compared(self._log, self._started_at, expected)
        while self._clock.monotonic() < deadline:
            quiet = self._follower.quiet_seconds()
            if self._is_settled() and (
                quiet >= patience
                or (quiet >= self._shortest_quiet() and compared.is_equal(self._follower.changed_revision))
            ):
                return True
            if self.operator.has_given_up and quiet >= self._options.quiet:
                return True
            pause(self._clock, 2 * _AGAIN)
        return self._follower.quiet_seconds() >= self._options.quiet

    def _shortest_quiet(self) -> float:
        """Return the time for which an equal state must last; perturbations that have not begun may still begin."""
        return self._options.quiet if self._perturber.unreached else min(_SHORTEST_QUIET, self._options.quiet)

    def _is_settled(self) -> bool:
        """Return whether the operator runs, and no perturbation is active."""
        return self._perturber.is_over() and self._has_started()

    def _crash(self) -> None:
        self._watched |= self._watches.resources
        self.operator.crash()

    def _touch(self, path: str) -> None:
        self._administrator.merge(path, {"metadata": {"annotations": {TOUCHED: str(self._head())}}})

    def _head(self) -> int:
        return self._log.head().revision

    def _write_kubeconfig(self) -> Path:
        file = self._folder / KUBECONFIG
        file.write_text(operator_kubeconfig(self.proxy.url), encoding="utf-8")
        return file


class _Compared:
    """Compares the state of a running log with an expected state, once for each change."""

    def __init__(self, log: EventLog, started_at: int, expected: Expectation | None) -> None:
        self._log = log
        self._started_at = started_at
        self._expected = expected
        self._revision = -1
        self._is_equal = False

    def is_equal(self, revision: int) -> bool:
        """Return whether the state, which changed last at `revision`, is the expected one."""
        if self._expected is not None and self._revision != revision:
            self._revision = revision
            self._is_equal = not self._expected.findings(state_of(self._log, self._started_at), revision)
        return self._is_equal


def namespaces_of(scenario: Scenario) -> set[str]:
    """Return the namespaces of the objects that a scenario names."""
    found: set[str] = set()
    for step in scenario.steps:
        if isinstance(step, Apply):
            found |= {obj["metadata"].get("namespace", "default") for obj in step.objects}
        elif not (isinstance(step, Wait) and step.target is None):
            assert step.target is not None
            found.add(step.target.namespace or "default")
    return found
