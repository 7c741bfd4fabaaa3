"""Tests of warnings about updates of workloads, and of fields that an update keeps."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.kinds.refusals import VALID
from tests.kinds.stage import Stage, merged, staged

DEPLOYMENTS, SETS, DAEMONS = "apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets"
VOLUMES = "v1/persistentvolumes"


def create(stage: Stage, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    return stage.create(merged(copy.deepcopy(VALID[stage.path]), changes or {}))


OLD_SELECTOR = {"spec": {"template": {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "x"}}}}}
ANNOTATED = {"metadata": {"annotations": {"x": "y"}}}


@pytest.mark.parametrize(
    ("path", "change", "is_warned"),
    [
        (DEPLOYMENTS, ANNOTATED, True),  # this counts as a change of the desired state
        (DEPLOYMENTS, {"metadata": {"labels": {"x": "y"}}}, False),
        (SETS, ANNOTATED, False),
        (DAEMONS, {"spec": {"minReadySeconds": 5}}, False),  # the template did not change
        (DAEMONS, {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}, True),
    ],
)
def test_an_updated_template_causes_kubernetes_warnings(path: str, change: dict[str, Any], is_warned: bool) -> None:
    stage = staged(path)
    stage.update(create(stage, OLD_SELECTOR), change)
    assert bool(stage.warnings) is is_warned


def test_a_changed_replication_controller_causes_warnings_about_the_old_object() -> None:
    stage = staged("v1/replicationcontrollers")
    made = create(stage)
    changed = stage.update(made, OLD_SELECTOR)
    assert stage.warnings == []
    stage.update(changed, {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    assert len(stage.warnings) == 1


def test_claims_and_history_limits_of_stateful_sets_cause_warnings() -> None:
    stage = staged(SETS)
    claim = {
        "metadata": {"name": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5"}}},
    }
    made = create(stage, {"spec": {"volumeClaimTemplates": [claim], "revisionHistoryLimit": -1}})
    words = 'resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'
    history = (
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
    )
    assert stage.warnings == [f"spec.volumeClaimTemplates[0].{words}", history]
    stage.update(made, ANNOTATED)
    assert stage.warnings == [f"spec.volumeClaimTemplates[0].Spec.{words}", history]


def test_a_volume_keeps_the_transition_time_of_its_phase() -> None:
    stage = staged(VOLUMES)
    made = create(stage)
    noted = made["status"]["lastPhaseTransitionTime"]
    kept = stage.update(made, {"status": {"lastPhaseTransitionTime": None, "message": "m"}}, "status")
    assert kept["status"] == {"phase": "Pending", "message": "m", "lastPhaseTransitionTime": noted}
