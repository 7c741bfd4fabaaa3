"""Tests of `--feature-gates`: feature gates that can be switched, and feature gates that are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.engine.features.chosen_gates import chosen_gates, report_gates
from ctrlmgr.engine.features.dropping import drop_disabled
from ctrlmgr.engine.features.gates import DEFAULTS, is_on, switch
from ctrlmgr.engine.features.known_gates import KNOWN_GATES, Stage
from ctrlmgr.errors import SettingsError


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    switch({})


def test_an_enabled_gate_keeps_its_field() -> None:
    def stored() -> Mapping[str, object]:
        template: dict[str, dict[str, object]] = {"spec": {"containers": [], "hostnameOverride": "web"}}
        drop_disabled("", "Pod", template, None)
        return template["spec"]

    assert "hostnameOverride" in stored()
    switch(chosen_gates(["HostnameOverride=false"]))
    assert "hostnameOverride" not in stored()
    switch({})
    assert "hostnameOverride" in stored()


def test_all_gates_of_a_stage_are_switched_except_named_ones() -> None:
    chosen = chosen_gates(["AllAlpha=true", "GenericWorkload=false"])
    alpha = {gate for gate in DEFAULTS if KNOWN_GATES[gate].stage is Stage.ALPHA}
    assert {gate for gate, state in chosen.items() if state} == alpha - {"GenericWorkload"}
    assert not chosen["GenericWorkload"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        ("EnvFiles", "missing bool value for EnvFiles"),
        ("EnvFiles=maybe", "invalid value of EnvFiles=maybe; it must be true or false"),
        (
            "AuthorizeNodeWithSelectors=false",
            "cannot set feature gate AuthorizeNodeWithSelectors to false, feature is locked to true",
        ),
        ("WatchList=false", "WatchList is always true in ctrlmgr; leave it out"),
    ],
)
def test_invalid_states_are_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        chosen_gates([text])
    assert str(refused.value) == f"--feature-gates: {problem}"


def test_a_default_can_be_given_explicitly() -> None:
    assert chosen_gates(["WatchList=true", "AuthorizeNodeWithSelectors=t"]) == {}


def test_a_gate_without_code_cannot_be_switched() -> None:
    with pytest.raises(KeyError, match="WatchList"):
        switch({"WatchList": False})
    assert is_on("EnvFiles")


def test_the_metric_lists_every_gate() -> None:
    report_gates({"EnvFiles": False})
    labels = {"name": "EnvFiles", "stage": "BETA"}
    assert REGISTRY.get_sample_value("kubernetes_feature_enabled", labels) == 0
    labels = {"name": "AuthorizeNodeWithSelectors", "stage": ""}
    assert REGISTRY.get_sample_value("kubernetes_feature_enabled", labels) == 1
