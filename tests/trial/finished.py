"""Finished runs for tests: what a run would have learned, without a server."""

from __future__ import annotations

from pathlib import Path

from ctrlmgr.api.resource import Resource
from ctrlmgr.trial.oracles.end_state import Name, State
from ctrlmgr.trial.perturbation_plan import Plan
from ctrlmgr.trial.proxy.operator_request import Call
from ctrlmgr.trial.proxy.perturber import LearnedWrite
from ctrlmgr.trial.run_record import RunRecord
from ctrlmgr.trial.running.operator_run import FinishedRun

WIDGETS = Resource("example.com", "widgets")


def state(*names: str) -> State:
    """Return a state with ConfigMaps of these names."""
    maps = Resource("", "configmaps")
    return State({Name(maps, "shop", name): [{}] for name in names}, {maps: "ConfigMap"})


def finished(
    *writes: str,
    plan: Plan | None = None,
    folder: Path | None = None,
    end: State | None = None,
    rights: tuple[str, ...] = ("list widgets.example.com",),
    failed_step: str = "",
) -> FinishedRun:
    """Return a run with these writes; a text `409 create pods shop/web` is a refused write.

    Updates are conditional.
    """
    learned: list[LearnedWrite] = []
    for write in writes:
        code, text = (int(write[:3]), write[4:]) if write[0].isdecimal() else (200, write)
        call = Call.parse(text)
        occurrence = sum(each.call == call for each in learned) + 1
        learned.append(LearnedWrite(call, occurrence, code, is_conditional=call.verb == "update"))
    record = RunRecord(folder or Path("run"), "trial-operator", 1, (), 9, failed_step=failed_step)
    watched = frozenset((WIDGETS,))
    return FinishedRun(plan or Plan(), record, {}, end or state(), tuple(learned), rights, watched, ())
