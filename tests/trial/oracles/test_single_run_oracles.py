"""All oracles together judge a run."""

from __future__ import annotations

from pathlib import Path
from random import Random

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.testing.builders import a_namespace
from ctrlmgr.trial.oracles.single_run_oracles import ORACLES, SingleRunOracles, judge
from ctrlmgr.trial.oracles.user_checks import Checks, parse
from ctrlmgr.trial.run_record import DATABASE, RunRecord
from tests.trial.oracles.played import Played, config_map, owner, secret, widget


def test_a_correct_operator_has_no_findings() -> None:
    played = Played()
    made = played.user_create(widget("a", spec={"size": 1}))
    child = played.operator_create(config_map("a-config", {"size": "1"}, ownerReferences=owner(made)))
    played.operator_patch("Widget", "a", {"status": {"observedGeneration": 1}}, "/status")
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    played.operator_patch("ConfigMap", "a-config", {"data": {"size": "2"}})
    played.operator_patch("Widget", "a", {"status": {"observedGeneration": 2}}, "/status")
    played.user_delete("Widget", "a")
    played.operator_delete("ConfigMap", child["metadata"]["name"])
    assert judge(played.log, played.record()) == []


def test_findings_of_several_oracles_and_of_the_users_checks_are_joined() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.operator_create(secret("a-password"))
    played.operator_delete("Secret", "a-password")
    played.operator_create(config_map("a-config"))
    played.user_delete("Widget", "a")
    checks = Checks(parse({"checks": [{"always": "objects.Widget.size() == 0"}]}, "checks"))
    found = [each.oracle for each in judge(played.log, played.record(), checks)]
    assert found == ["leaked-object", "data-deleted", "user-check"]
    assert {"leaked-object", "data-deleted"} <= {*ORACLES}


def test_a_trial_judges_the_log_in_the_folder_of_a_run(tmp_path: Path) -> None:
    url, clock = f"sqlite:///{tmp_path / DATABASE}", SystemClock()
    with_log = open_log(url, clock=clock, random=Random(1), migrate=True)
    with_log.append([Proposal(EventType.ADDED, a_namespace("shop"), 0)], author=Author("alice"))
    with_log.close()
    checks = Checks(parse({"checks": [{"always": "objects.Namespace.size() == 0"}]}, "checks"))
    [found] = SingleRunOracles(checks, clock=clock)(RunRecord(tmp_path, "trial-operator", 0, (), 1))
    assert found.message.endswith("is false at revision 1.")
