"""A trial: clean runs, from which it learns, then perturbed runs, whose findings it collects.

Guarantees: a finding that clean runs also have is reported without a perturbation. Each finding is reported once, with
the smallest plan that led to it. The folder of each reported run is kept.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ctrlmgr import threads
from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.end_state import learn
from ctrlmgr.trial.perturbation_plan import Perturbation, Plan
from ctrlmgr.trial.planning import plans
from ctrlmgr.trial.run_record import RunRecord
from ctrlmgr.trial.running.operator_run import Expectations, FinishedRun, RunOptions, perform
from ctrlmgr.trial.scenario import Scenario

Oracle = Callable[[RunRecord], Iterable[Finding]]
PLAN = "plan.yaml"
"""The name of the plan's file in the folder of a run."""


class TrialFailed(CtrlmgrError, RuntimeError):
    """The clean runs do not work, so there is nothing to compare with."""


class TrialOptions(NamedTuple):
    """The options of a trial.

    - `folder` keeps the runs; `jobs` is the number of runs at once.
    - `families` are the chosen families of perturbations; `plan` replaces them with one plan.
    - `keeps_all` keeps the folders of all runs.
    """

    run: RunOptions
    scenario: Scenario
    folder: Path
    families: Collection[str]
    jobs: int
    plan: Plan | None = None
    keeps_all: bool = False


class Reported(NamedTuple):
    """A finding, with the smallest plan that led to it, and the run with this plan.

    `others` is the number of other plans that led to the same finding.
    """

    finding: Finding
    plan: Plan
    record: RunRecord
    others: int

    @property
    def plan_file(self) -> Path:
        """The file with the plan."""
        return self.record.folder / PLAN


class TrialResult(NamedTuple):
    """The result of a trial.

    `unreached` are the perturbations that did not happen, because the operator did not send the request again.
    """

    reported: tuple[Reported, ...]
    runs: int
    writes: int
    unreached: tuple[Perturbation, ...]


class Progress(NamedTuple):
    """The state of a trial: what it does, and the number of finished and planned runs of this part."""

    part: str
    finished: int
    planned: int


class _Judged(NamedTuple):
    run: FinishedRun
    findings: tuple[Finding, ...]


class Trial:
    """One trial."""

    def __init__(
        self, options: TrialOptions, oracles: Sequence[Oracle], tell: Callable[[Progress], None], *, clock: Clock
    ) -> None:
        """Prepare a trial; `tell` is called with the progress, on any thread."""
        self._options = options
        self._oracles = oracles
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._runs = 0
        self._expected: Expectations | None = None

    def run(self) -> TrialResult:
        """Learn, perturb, and return the findings; raises `TrialFailed` if a clean run fails."""
        clean = self._all("learning from clean runs", [Plan(), Plan()])
        self._require_success(clean)
        one, other = (judged.run for judged in clean)
        at_waits = {step: learn(state, other.at_waits[step]) for step, state in one.at_waits.items()}
        self._expected = Expectations(at_waits, learn(one.state, other.state))
        options = self._options
        planned = [options.plan] if options.plan else plans(one, other, options.scenario, options.families)
        perturbed = self._all("perturbing", planned)
        known = self._known([clean[0], *perturbed])
        smaller = [each for judged in perturbed for each in self._smaller(judged, known)]
        unreached = {each for judged in perturbed for each in judged.run.unreached}
        reported = self._reported([clean[0], *perturbed, *smaller])
        self._clean_up([*clean, *perturbed, *smaller], reported)
        return TrialResult(tuple(reported), self._runs, len(one.writes), tuple(sorted(unreached)))

    def _require_success(self, clean: Sequence[_Judged]) -> None:
        for judged in clean:
            record = judged.run.record
            if record.failed_step:
                raise TrialFailed(
                    f"the scenario fails without a perturbation: {record.failed_step}; see {record.folder}"
                )
            if not judged.run.rights:
                raise TrialFailed(
                    f"the operator sent no request for a resource; its output is in {record.folder}/operator.log"
                )

    def _all(self, part: str, planned: Sequence[Plan]) -> list[_Judged]:
        """Run all plans, some at once."""
        finished = 0
        self._tell(Progress(part, 0, len(planned)))

        def run(plan: Plan) -> _Judged:
            nonlocal finished
            judged = self._one(plan)
            with self._lock:
                finished += 1
                self._tell(Progress(part, finished, len(planned)))
            return judged

        return threads.each("trial-run", run, planned, self._options.jobs) if planned else []

    def _one(self, plan: Plan) -> _Judged:
        """Run one plan and ask the oracles."""
        with self._lock:
            self._runs += 1
            folder = self._options.folder / f"run-{self._runs:03d}"
        options = self._options
        run = perform(options.run, options.scenario, plan, folder, self._expected, clock=self._clock)
        (folder / PLAN).write_text(plan.text(), encoding="utf-8")
        return _Judged(run, tuple(self._judge(run)))

    def _judge(self, run: FinishedRun) -> Iterable[Finding]:
        record = run.record
        if record.failed_step:
            yield Finding("scenario", f"A step of the scenario failed: {record.failed_step}.", "", record.ended_at)
        elif self._expected is not None:
            yield from self._expected.at_end.findings(run.state, record.ended_at)
        for oracle in self._oracles:
            yield from oracle(record)

    def _known(self, judged: Sequence[_Judged]) -> set[tuple[str, str]]:
        """Return the findings of runs whose plan cannot become smaller."""
        smallest = [each for each in judged if len(each.run.plan.perturbations) <= 1]
        return {_identity(finding) for each in smallest for finding in each.findings}

    def _smaller(self, judged: _Judged, known: Collection[tuple[str, str]]) -> list[_Judged]:
        """Halve a plan as long as one half leads to one of its findings; return all new runs.

        Findings that are `known` from smaller plans are ignored.
        """
        tried: list[_Judged] = []
        current = judged
        while len(current.run.plan.perturbations) > 1:
            wanted = {_identity(each) for each in current.findings}.difference(known)
            if not wanted:
                break
            perturbations = current.run.plan.perturbations
            middle = len(perturbations) // 2
            halves = [Plan(perturbations[:middle]), Plan(perturbations[middle:])]
            runs = self._all("looking for smaller plans", halves)
            tried += runs
            smaller = [each for each in runs if wanted & {_identity(finding) for finding in each.findings}]
            if not smaller:
                break
            current = smaller[0]
        return tried

    def _reported(self, judged: Sequence[_Judged]) -> list[Reported]:
        """Group equal findings; the smallest plan is reported, and of equally small ones the first."""
        found: dict[tuple[str, str], list[tuple[_Judged, Finding]]] = {}
        for each in judged:
            for finding in each.findings:
                found.setdefault(_identity(finding), []).append((each, finding))
        reported = []
        for group in found.values():
            best, finding = min(group, key=lambda pair: len(pair[0].run.plan.perturbations))
            reported.append(Reported(finding, best.run.plan, best.run.record, len({id(each) for each, _ in group}) - 1))
        return reported

    def _clean_up(self, judged: Sequence[_Judged], reported: Sequence[Reported]) -> None:
        """Delete the folders of runs that are not reported; the first clean run stays, to compare with."""
        if self._options.keeps_all:
            return
        kept = {each.record.folder for each in reported} | {judged[0].run.record.folder}
        for each in judged:
            if each.run.record.folder not in kept:
                shutil.rmtree(each.run.record.folder, ignore_errors=True)


def _identity(finding: Finding) -> tuple[str, str]:
    """Return what makes two findings of different runs the same: the oracle and the object, or else the message."""
    return finding.oracle, finding.object or finding.message
