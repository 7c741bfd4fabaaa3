"""Pods that look like one that was checked: nothing is said of them, and of all others all that there is to say."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from ctrlmgr.kinds.core.pod import validation
from ctrlmgr.kinds.core.pod.sound import sight_of
from tests.engine.stage import Stage

Change = Callable[[dict[str, Any]], object]

PODS = "/api/v1/namespaces/shop/pods"


def pod(name: str = "web", suffix: str = "b2c4d") -> dict[str, Any]:
    volume = f"kube-api-access-{suffix}"
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": volume, "mountPath": "/token"}]}],
            "volumes": [{"name": volume, "projected": {"sources": []}}],
        },
    }


def changed(change: Change) -> dict[str, Any]:
    other = pod()
    change(other)
    return other


def test_pods_of_one_template_are_one_whatever_they_and_their_token_volumes_are_called() -> None:
    assert sight_of(pod()) is sight_of(pod("api", "xxxxx"))


@pytest.mark.parametrize(
    "change",
    [
        lambda other: other["spec"].update(nodeName="n"),
        lambda other: other["metadata"].update(annotations={"a": "b"}),
        lambda other: other["spec"]["volumes"][0].update(name="kube-api-access-B2C4D"),
        lambda other: other["spec"]["volumes"][0].update(name="kube-api-access-xxxxx"),
        lambda other: other["spec"]["volumes"].append({"name": "kube-api-access-zzzzz", "emptyDir": {}}),
        lambda other: other["spec"]["containers"][0]["volumeMounts"][0].update(name="\0"),
    ],
)
def test_a_pod_that_differs_is_another(change: Change) -> None:
    assert sight_of(changed(change)) is not sight_of(pod())


def test_two_volumes_of_one_name_are_not_two_volumes() -> None:
    two, twice = pod(), pod()
    two["spec"]["volumes"].append({"name": "kube-api-access-zzzzz", "emptyDir": {}})
    twice["spec"]["volumes"].append({"name": "kube-api-access-b2c4d", "emptyDir": {}})
    assert sight_of(two) is not sight_of(twice)


@pytest.mark.parametrize(
    "change",
    [
        lambda other: other["spec"]["volumes"].append({"name": "own", "ephemeral": {}}),
        lambda other: other["spec"]["containers"][0].update(image="i" * 9000),
    ],
)
def test_of_a_large_pod_or_one_whose_name_matters_nothing_is_known(change: Change) -> None:
    assert sight_of(changed(change)) is None


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pods that were checked."""
    checked: list[str] = []
    check = validation.validate_pod_spec

    def counted(spec: Any, path: Any, *, pod_name: str, is_pod: bool) -> Any:
        checked.append(pod_name)
        return check(spec, path, pod_name=pod_name, is_pod=is_pod)

    monkeypatch.setattr(validation, "validate_pod_spec", counted)
    return checked


def _stage() -> Stage:
    stage = Stage()
    stage.namespace("shop")
    stage.send("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "default"}})
    return stage


def _send(stage: Stage, name: str, image: str, **spec: Any) -> tuple[int, int]:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}
    response = stage.send("POST", PODS, deepcopy(body))
    return response.code, len(response.warnings)


def test_the_second_pod_of_a_template_is_not_checked(checks: list[str]) -> None:
    stage = _stage()
    assert [_send(stage, name, "of-one-template") for name in ("a", "b")] == [(201, 0)] * 2
    assert checks == ["a"]


def test_an_error_is_found_every_time(checks: list[str]) -> None:
    stage = _stage()
    assert [_send(stage, name, "refused", restartPolicy="Maybe") for name in ("a", "b")] == [(422, 0)] * 2
    assert checks == ["a", "b"]


def test_a_warning_is_given_every_time(checks: list[str]) -> None:
    selector = {"beta.kubernetes.io/arch": "arm64"}
    stage = _stage()
    assert [_send(stage, name, "warned-of", nodeSelector=selector) for name in ("a", "b")] == [(201, 1)] * 2
    assert checks == ["a", "b"]


def test_a_name_is_warned_of_though_the_pod_is_known() -> None:
    stage = _stage()
    assert [_send(stage, name, "dotted") for name in ("a", "b.c")] == [(201, 0), (201, 1)]
