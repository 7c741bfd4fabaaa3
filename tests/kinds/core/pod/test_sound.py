"""Pods that look like one that was checked: nothing is said of them, and of all others all that there is to say."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from ctrlmgr.admission.registry import new_chain
from ctrlmgr.api.object import Object
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.clock import SystemClock
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.kinds.core.pod import validation
from ctrlmgr.kinds.core.pod.sound import Sight, sight_of
from ctrlmgr.settings.admission import AdmissionSettings
from tests.engine.stage import Stage, builtin_kinds

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


def seen(pod: dict[str, Any]) -> Sight:
    found = sight_of(pod)
    assert found is not None
    return found.sight


def test_pods_of_one_template_are_one_whatever_they_and_their_token_volumes_are_called() -> None:
    assert seen(pod()) is seen(pod("api", "xxxxx"))


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
    assert seen(changed(change)) is not seen(pod())


def test_two_volumes_of_one_name_are_not_two_volumes() -> None:
    two, twice = pod(), pod()
    two["spec"]["volumes"].append({"name": "kube-api-access-zzzzz", "emptyDir": {}})
    twice["spec"]["volumes"].append({"name": "kube-api-access-b2c4d", "emptyDir": {}})
    assert seen(two) is not seen(twice)


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

    def counted(spec: Any, path: Any, *, pod_name: str, is_mirror: bool) -> Any:
        checked.append(pod_name)
        return check(spec, path, pod_name=pod_name, is_mirror=is_mirror)

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


def _stored(stage: Stage, name: str, spec: dict[str, Any]) -> tuple[bytes, bytes]:
    """Create a pod; returns its body as it is stored, and as its codec writes what that says."""
    response = stage.send(
        "POST", PODS, {"metadata": {"name": name, "annotations": {"a": "<&>"}}, "spec": deepcopy(spec)}
    )
    assert response.code == 201
    body = stage.log.events_after(stage.log.head().revision - 1)[0].object.body
    kind = stage.kinds.by_gvk(GroupVersionKind("", "v1", "Pod"))
    assert kind is not None
    return body, kind.codec.encode(msgspec.json.decode(body))


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "c", "image": "plain"}]},
        {"containers": [{"name": "c", "image": "i", "args": ["<kube-api-access-b2c4d&>", "\u2028", "\\0"]}]},
        {
            "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "z", "mountPath": "/z"}]}],
            "volumes": [{"name": "z", "emptyDir": {"sizeLimit": "1024Mi"}}],
            "tolerations": [{"operator": "Exists"}],
        },
    ],
)
def test_a_spec_that_is_known_is_stored_as_if_it_were_not(spec: dict[str, Any]) -> None:
    stage = Stage(admission=new_chain(builtin_kinds(), SystemClock(), AdmissionSettings(), AlwaysAllow()))
    stage.namespace("shop")
    stage.send("POST", "/api/v1/namespaces/shop/serviceaccounts", {"metadata": {"name": "default"}})
    for name in ("first", "second", "third"):
        body, written_anew = _stored(stage, name, spec)
        assert body == written_anew
    assert b"kube-api-access-" in body


def test_what_is_known_of_new_metadata_is_what_the_body_says() -> None:
    stage = _stage()
    for name, more in (
        ("a", {}),
        ("b", {"labels": {"z": "1", "a": "2"}, "annotations": {}}),
        ("c", {"finalizers": []}),
    ):
        body = {"metadata": {"name": name, **more}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert stage.send("POST", PODS, body).code == 201
        stored = stage.log.events_after(stage.log.head().revision - 1)[0].object
        assert stored.metadata == Object(stored.resource, stored.body).metadata
