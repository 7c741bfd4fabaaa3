"""Tests of the admission functions of apps: the changes, refusals and errors of the functions, and invalid
declarations.
"""

from __future__ import annotations

import msgspec
import pytest

from ctrlmgr import ApiError, App, Kind, Model, Refused, Untyped, Write
from ctrlmgr.admission.plugin_registry import enabled
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.app_admission import plugin_of
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.testing import Harness


class MapData(Model):
    """The `data` of a ConfigMap, as a class with one declared key."""

    size: str = ""


class DeclaredKeyConfigMap(Kind, api_version="v1", kind="ConfigMap"):
    """A ConfigMap whose `data` has one declared key."""

    data: MapData = MapData()


def a_map(name: str = "a", **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def test_a_function_changes_objects_and_keeps_fields_unknown_to_its_class() -> None:
    app = App("rules")

    @app.admission(DeclaredKeyConfigMap)
    def sized(found: DeclaredKeyConfigMap, write: Write) -> None:
        found.data.size = found.data.size or "small"
        found.labels["by"] = write.user

    cluster = Harness(app)
    cluster.create(a_map(other="x"))
    made = cluster.get("v1/ConfigMap", "a")
    assert made is not None
    assert (made["data"], made.labels) == ({"other": "x", "size": "small"}, {"by": "test"})


def test_labels_can_be_removed() -> None:
    app = App("rules")

    @app.admission("v1/ConfigMap")
    def bare(found: Untyped, write: Write) -> None:
        found.labels.clear()
        found.fields.pop("data", None)

    cluster = Harness(app)
    cluster.create({**a_map(x="y"), "metadata": {"name": "a", "namespace": "default", "labels": {"a": "b"}}})
    made = cluster.get("v1/ConfigMap", "a")
    assert made is not None
    assert (made.labels, made.get("data")) == ({}, None)


def test_an_update_that_keeps_a_rules_fields_is_accepted() -> None:
    app, asked = App("rules"), []

    @app.admission("v1/ConfigMap", validates=True, on=["data.size", "immutable"])
    def never(found: Untyped, write: Write) -> None:
        asked.append(write.operation)
        if write.operation == "UPDATE":
            raise Refused("no")

    cluster = Harness(app)
    finalizers = {"finalizers": ["example.com/a"], "name": "a", "namespace": "default"}
    cluster.create({**a_map(size="small"), "metadata": finalizers})
    cluster.patch("v1/ConfigMap", "a", {"metadata": {"finalizers": None}})
    cluster.patch("v1/ConfigMap", "a", {"data": {"other": "x", "size": "small"}})
    assert asked == ["CREATE"]
    for changed in ({"data": {"size": "large"}}, {"data": None}, {"immutable": True}):
        with pytest.raises(ApiError, match="is forbidden: no"):
            cluster.patch("v1/ConfigMap", "a", changed)


def test_a_function_refuses_and_reads_the_old_object() -> None:
    app = App("rules")

    @app.admission("v1/ConfigMap", operations=["UPDATE", "DELETE"], validates=True)
    def frozen(found: Untyped, write: Write) -> None:
        if write.old.get("data", {}).get("frozen"):
            raise Refused(f"{write.operation} of what is frozen")

    cluster = Harness(app)
    cluster.create(a_map(frozen="yes"))
    with pytest.raises(ApiError, match='configmaps "a" is forbidden: UPDATE of what is frozen'):
        cluster.patch("v1/ConfigMap", "a", {"data": {"x": "y"}})
    with pytest.raises(ApiError, match="DELETE of what is frozen"):
        cluster.delete("v1/ConfigMap", "a")


def test_a_failing_function_refuses_and_reports_its_line() -> None:
    app = App("rules")

    @app.admission("v1/ConfigMap")
    def broken(found: Untyped, write: Write) -> None:
        raise KeyError("oops")

    with pytest.raises(
        ApiError, match=r'plugin "broken" failed: KeyError: .oops. \(.*test_app_admission.py:\d+\)'
    ) as failed:
        Harness(app).create(a_map())
    assert failed.value.code == 500


def test_an_object_that_does_not_fit_the_class_is_a_failure() -> None:
    app = App("rules")

    class Numbered(Kind, api_version="v1", kind="ConfigMap"):
        data: dict[str, int] = msgspec.field(default_factory=dict)

    @app.admission(Numbered)
    def numbers(found: Numbered, write: Write) -> None:
        raise AssertionError("it is never called")

    with pytest.raises(ApiError, match="ValidationError"):
        Harness(app).create(a_map(x="y"))


def test_admission_functions_have_a_position_and_can_be_disabled() -> None:
    app = App("rules")

    @app.admission("v1/Pod")
    def house_rule(found: Untyped, write: Write) -> None:
        """Do nothing."""

    own = [plugin_of(house_rule)]
    names = [entry.name for entry in enabled(AdmissionSettings(), own)]
    assert names.index("PodResizeValidator") < names.index("house-rule") < names.index("MutatingAdmissionWebhook")
    off = AdmissionSettings(disable_plugins=("house-rule",))
    assert "house-rule" not in [entry.name for entry in enabled(off, own)]
    with pytest.raises(SettingsError, match="two admission plugins are called house-rule"):
        list(enabled(AdmissionSettings(), [*own, *own]))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"operations": ["PATCH"]}, "operations must be of CREATE, UPDATE, DELETE"),
        ({"operations": []}, "operations must be of CREATE, UPDATE, DELETE"),
        ({"name": "Not A Name"}, "is not a valid name of an admission plugin"),
    ],
)
def test_invalid_declarations_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        App("rules").admission("v1/Pod", **{"name": "a", **options})(lambda found, write: None)  # type: ignore[arg-type]  # as tested


def test_a_function_must_have_two_parameters() -> None:
    with pytest.raises(TypeError, match="it takes two things, the object and the write"):
        App("rules").admission("v1/Pod", name="a")(lambda found: None)  # type: ignore[arg-type, misc]  # as tested
