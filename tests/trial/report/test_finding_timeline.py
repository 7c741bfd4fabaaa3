"""The timeline of a finding has the operator's writes and the changes of the object."""

from __future__ import annotations

from pathlib import Path

from ctrlmgr.eventlog import Author
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.perturbation_plan import Plan
from ctrlmgr.trial.report.finding_timeline import timeline
from ctrlmgr.trial.run_record import RunRecord
from ctrlmgr.trial.trial_runner import Reported
from tests.trial.logs import Log

ADMIN = Author("admin")


def test_a_timeline_ends_at_the_finding() -> None:
    log = Log()
    log.put("ConfigMap", "before")
    started = log.head().revision
    log.put("ConfigMap", "web", author=ADMIN)
    log.put("ConfigMap", "other", author=ADMIN)
    log.put("Event", "noise")
    log.put("ConfigMap", "written")
    found_at = log.head().revision
    log.put("ConfigMap", "after")
    record = RunRecord(Path("run"), "trial-operator", started, (), log.head().revision)
    reported = Reported(Finding("end-state", "…", "ConfigMap shop/web", found_at), Plan(), record, 0)
    assert [event.object.name for event in timeline(reported, log)] == ["web", "written"]
    unplaced = reported._replace(finding=Finding("end-state", "…"))
    assert [event.object.name for event in timeline(unplaced, log)] == ["written", "after"]


def test_a_long_timeline_is_cut_at_its_beginning() -> None:
    log = Log()
    for number in range(20):
        log.put("ConfigMap", f"web-{number}")
    record = RunRecord(Path("run"), "trial-operator", 0, (), log.head().revision)
    found = timeline(Reported(Finding("end-state", "…"), Plan(), record, 0), log)
    assert [event.object.name for event in found] == [f"web-{number}" for number in range(8, 20)]
