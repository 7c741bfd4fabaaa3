"""Tests of `--runtime-config`: versions and resources that are switched on or off, and settings that are refused."""

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.errors import SettingsError
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.runtime_config import ApiSelection, optional_versions, selected_apis
from ctrlmgr.server.describe.openapi.paths import served_paths

INTERNAL, MIGRATION = "internal.apiserver.k8s.io/v1alpha1", "storagemigration.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("texts", "on", "off"),
    [
        ((), (), (INTERNAL, MIGRATION)),
        (("",), (), (INTERNAL, MIGRATION)),
        ((f"{INTERNAL}=true",), (INTERNAL,), (MIGRATION,)),
        ((INTERNAL,), (INTERNAL,), (MIGRATION,)),
        (("api/all=true",), (INTERNAL, MIGRATION), ()),
        (("api/beta=true",), (MIGRATION,), (INTERNAL,)),
        (("api/alpha=true", f"{MIGRATION}=false"), (INTERNAL,), (MIGRATION,)),
        ((f"{INTERNAL}=false", "api/all=true"), (MIGRATION,), (INTERNAL,)),
        (("api/beta=false", "api/all=true"), (INTERNAL,), (MIGRATION,)),
        (("v1=true", "apps/v1=true", "api/ga=true"), (), (INTERNAL, MIGRATION)),
        (("batch/v1beta1=false",), (), (INTERNAL, MIGRATION)),
    ],
)
def test_optional_versions_are_chosen(texts: tuple[str, ...], on: tuple[str, ...], off: tuple[str, ...]) -> None:
    chosen = selected_apis(texts)
    assert set(on) <= set(chosen.served) <= set(optional_versions())
    assert not set(off) & set(chosen.served)
    assert chosen.disabled == ()


@pytest.mark.parametrize(
    ("texts", "selection"),
    [
        (("apps/v1=false",), ApiSelection((), ("apps/v1",))),
        (("v1=false",), ApiSelection((), ("v1",))),
        (("api/v1=false",), ApiSelection((), ("v1",))),
        (("apps/v1/deployments=false",), ApiSelection((), ("apps/v1/deployments",))),
        (("v1/secrets=false",), ApiSelection((), ("v1/secrets",))),
        (("apps/v1/deployments=true",), ApiSelection()),
        (("apps/v1=false", "apps/v1/deployments"), ApiSelection(("apps/v1/deployments",), ("apps/v1",))),
        (
            (f"{MIGRATION}/storageversionmigrations=true",),
            ApiSelection((f"{MIGRATION}/storageversionmigrations",), ()),
        ),
    ],
)
def test_versions_and_resources_are_switched(texts: tuple[str, ...], selection: ApiSelection) -> None:
    assert selected_apis(texts) == selection


def test_a_version_can_be_kept_when_all_others_are_off() -> None:
    chosen = selected_apis(["api/all=false", "v1=true", "apps/v1=true"])
    assert {"batch/v1", "rbac.authorization.k8s.io/v1"} <= set(chosen.disabled)
    assert not {"v1", "apps/v1"} & set(chosen.disabled)
    assert {group.name: group.versions for group in builtin_kinds(disabled=chosen.disabled).groups} == {
        "": ("v1",),
        "apps": ("v1",),
    }


def test_disabled_apis_are_absent_from_discovery_and_openapi() -> None:
    kinds = builtin_kinds(disabled=["batch/v1", "apps/v1/daemonsets"])
    assert "batch" not in [group.name for group in kinds.groups]
    assert kinds.find("batch", "v1", "jobs") is None
    assert kinds.find("apps", "v1", "daemonsets") is None
    assert kinds.find("apps", "v1", "deployments") is not None
    assert [path for path in served_paths(kinds) if "batch" in path or "daemonsets" in path] == []
    assert kinds.stored(Resource("batch", "jobs")) is not None


def test_a_resource_of_a_disabled_version_can_be_served() -> None:
    kinds = builtin_kinds(served=["apps/v1/deployments"], disabled=["apps/v1"])
    assert [kind.resource.plural for kind in kinds if kind.resource.group == "apps"] == ["deployments"]


def test_a_version_whose_stored_version_is_disabled_is_served() -> None:
    kinds = builtin_kinds(disabled=["autoscaling/v2"])
    kind = kinds.find("autoscaling", "v1", "horizontalpodautoscalers")
    assert kind is not None
    fields = {"apiVersion": "autoscaling/v1", "kind": kind.name, "spec": {"maxReplicas": 3}}
    assert kind.translate is not None
    assert kind.translate(fields, "autoscaling/v2")[1]["spec"]["maxReplicas"] == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{INTERNAL}=maybe", f"--runtime-config: invalid value of {INTERNAL}=maybe; it must be true or false"),
        ("api/all=false", "--runtime-config: only api/all=false leaves nothing to serve; also switch on versions"),
        ("apps/v1/wagons=true", "--runtime-config: apps/v1 has no resource wagons"),
        (
            "batch/v1beta1=true",
            "--runtime-config: ctrlmgr has no version batch/v1beta1; it can switch on "
            + ", ".join(optional_versions()),
        ),
    ],
)
def test_settings_without_effect_are_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        selected_apis([text])
    assert str(refused.value) == problem
