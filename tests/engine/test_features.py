"""Tests of fields behind feature gates: while the gate is off, a field is dropped, unless the stored object has it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ctrlmgr.engine.features import gates
from ctrlmgr.engine.features.dropping import drop_disabled
from ctrlmgr.engine.features.guards import EACH, GUARDS, PLACES, Steps
from ctrlmgr.schema.definitions import Definitions

PLAIN_STOP = {"lifecycle": {"stopSignal": "SIGTERM"}}
HOOK = {"postStart": {"sleep": {"seconds": 1}}}


def _dropped(kind: str, new: dict[str, Any], old: dict[str, Any] | None = None, group: str = "") -> dict[str, Any]:
    found = copy.deepcopy(new)
    drop_disabled(group, kind, found, old)
    return found


def _pod(spec: dict[str, Any]) -> dict[str, Any]:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ({"schedulingGroup": {"podGroupName": "a"}}, {}),
        ({"containers": [PLAIN_STOP, {}]}, {"containers": [{}, {}]}),
        (
            {"initContainers": [{"lifecycle": {**HOOK, "stopSignal": "SIGHUP"}}]},
            {"initContainers": [{"lifecycle": HOOK}]},
        ),
        (
            {"volumes": [{"projected": {"sources": [{"podCertificate": {"a": 1}}, {"clusterTrustBundle": {"a": 1}}]}}]},
            {"volumes": [{"projected": {"sources": [{}, {}]}}]},
        ),
        ({"hostnameOverride": "a", "resources": {"limits": {"cpu": "1"}}}, None),
    ],
)
def test_pods_lose_fields_of_disabled_gates(spec: dict[str, Any], left: dict[str, Any] | None) -> None:
    assert _dropped("Pod", _pod(spec)) == _pod(spec if left is None else left)


@pytest.mark.parametrize(
    ("group", "kind", "way"),
    [
        ("", "PodTemplate", ("template", "spec")),
        ("apps", "Deployment", ("spec", "template", "spec")),
        ("batch", "CronJob", ("spec", "jobTemplate", "spec", "template", "spec")),
    ],
)
def test_templates_lose_fields_of_disabled_gates(group: str, kind: str, way: tuple[str, ...]) -> None:
    def wrapped(spec: dict[str, Any]) -> dict[str, Any]:
        for name in reversed(way):
            spec = {name: spec}
        return spec

    given = wrapped({"schedulingGroup": {"podGroupName": "a"}, "containers": []})
    assert _dropped(kind, given, group=group) == wrapped({"containers": []})


def test_a_gated_field_used_in_the_stored_object_is_kept() -> None:
    old = _pod({"containers": [{}, PLAIN_STOP]})
    new = _pod({"containers": [{"lifecycle": {"stopSignal": "SIGHUP"}}, {}]})
    assert _dropped("Pod", new, old) == new


def test_an_update_drops_gated_fields_unused_in_the_stored_object() -> None:
    assert _dropped("Pod", _pod({"containers": [PLAIN_STOP]}), _pod({"containers": [{}]})) == _pod({"containers": [{}]})


def test_a_data_source_in_another_namespace_is_dropped_completely() -> None:
    here, there = {"kind": "A", "name": "a"}, {"kind": "A", "name": "a", "namespace": "b"}
    assert _dropped("PersistentVolumeClaim", _pod({"dataSourceRef": here})) == _pod({"dataSourceRef": here})
    assert _dropped("PersistentVolumeClaim", _pod({"dataSourceRef": there})) == _pod({})
    used = _pod({"dataSourceRef": here})
    assert _dropped("PersistentVolumeClaim", _pod({"dataSourceRef": there}), used) == _pod({"dataSourceRef": there})


def test_fields_of_one_gate_are_kept_independently() -> None:
    def lease(**spec: str) -> dict[str, Any]:
        return {"spec": spec}

    coordinated = lease(strategy="OldestEmulationVersion", preferredHolder="you")
    old = lease(strategy="OldestEmulationVersion")
    assert _dropped("Lease", coordinated, group="coordination.k8s.io") == lease()
    assert _dropped("Lease", coordinated, old, group="coordination.k8s.io") == old


def test_a_gate_can_be_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"schedulingGroup": {"podGroupName": "a"}, "resources": {"limits": {"cpu": "1"}}}
    monkeypatch.setitem(gates.ENABLED, "GenericWorkload", True)
    monkeypatch.setitem(gates.ENABLED, "PodLevelResources", False)
    assert _dropped("Pod", _pod(spec)) == _pod({"schedulingGroup": {"podGroupName": "a"}})


def test_restart_policies_of_sidecars_need_no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gates.ENABLED, "ContainerRestartRules", False)
    spec = {
        "containers": [{"restartPolicy": "Always", "restartPolicyRules": [{}]}],
        "initContainers": [{"restartPolicy": "Always"}, {"restartPolicy": "Never"}],
    }
    left = {"containers": [{}], "initContainers": [{"restartPolicy": "Always"}, {}]}
    assert _dropped("Pod", _pod(spec)) == _pod(left)


def test_every_guard_has_a_gate_and_every_type_a_path() -> None:
    assert {guard.gate for guards in GUARDS.values() for guard in guards} <= gates.DEFAULTS.keys()
    assert {owner for places in PLACES.values() for _, owner in places} == GUARDS.keys()


def _exists(schema: Any, steps: Steps) -> bool:
    for step in steps:
        if schema is None:
            return False
        schema = (schema.items or schema.values) if step == EACH else schema.properties.get(step)
    return schema is not None


def test_guarded_fields_exist() -> None:
    definitions = Definitions.builtin()
    kinds: dict[tuple[str, str], str] = {}
    for (version, kind), definition in definitions.by_kind.items():
        group = version.partition("/")[0] if "/" in version else ""
        if version.endswith(("v1", "v2", "scheduling.k8s.io/v1alpha2")):
            kinds[group, kind] = max(kinds.get((group, kind), ""), definition)
    for key, places in PLACES.items():
        for place, owner in places:
            for guard in GUARDS[owner]:
                for steps in (*guard.fields, *guard.used):
                    assert _exists(definitions.schema(kinds[key]), (*place, *steps)), (key, steps)
