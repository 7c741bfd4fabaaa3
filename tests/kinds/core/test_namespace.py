from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.core.namespace import NamespaceStrategy
from tests.kinds.write import WriteResult, context, create, stored, update

STRATEGY = NamespaceStrategy()
ACTIVE: dict[str, Any] = {
    "metadata": {"name": "one", "labels": {"kubernetes.io/metadata.name": "one"}},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Active"},
}
GOING = {
    **ACTIVE,
    "metadata": {**ACTIVE["metadata"], "deletionTimestamp": "2024-05-01T12:00:00Z"},
    "status": {"phase": "Terminating"},
}


def created(**fields: Any) -> WriteResult:
    return create(STRATEGY, fields, namespaced=False)


def updated(old: dict[str, Any], subresource: str = "", **change: Any) -> WriteResult:
    return update(STRATEGY, old, change, namespaced=False, subresource=subresource)


def test_a_new_namespace_is_active_labelled_and_has_a_finalizer() -> None:
    assert created(metadata={"name": "one"}).object == ACTIVE


def test_a_creation_cannot_set_the_status() -> None:
    written = created(
        metadata={"name": "one", "labels": {"kubernetes.io/metadata.name": "two", "l": "1"}},
        spec={"finalizers": ["example.com/hold"]},
        status={"phase": "Terminating"},
    )
    assert written.errors == []
    assert written.object["metadata"]["labels"] == {"kubernetes.io/metadata.name": "one", "l": "1"}
    assert written.object["spec"] == {"finalizers": ["example.com/hold", "kubernetes"]}
    assert written.object["status"] == {"phase": "Active"}


def test_a_generated_name_becomes_the_label() -> None:
    metadata = created(metadata={"generateName": "gen-"}).object["metadata"]
    assert metadata["labels"] == {"kubernetes.io/metadata.name": metadata["name"]}


@pytest.mark.parametrize(
    ("name", "label_problems", "name_problems"),
    [  # validation-a-049, -052, -055, -058, -061, -064 of the corpus
        ("a" * 64, ["must be no more than 63 bytes"], ["must be no more than 63 characters"]),
        ("-a", name_formats.label_value("-a"), name_formats.dns1123_label("-a")),
        ("a.b", [], ["must not contain dots"]),
        ("A", [], name_formats.dns1123_label("A")),
        ("a_b", [], name_formats.dns1123_label("a_b")),
        ("9a", [], []),
    ],
)
def test_the_name_is_a_dns_label(name: str, label_problems: list[str], name_problems: list[str]) -> None:
    expected = [f'metadata.name: Invalid value: "{name}": {each}' for each in name_problems]
    expected += [f'metadata.labels: Invalid value: "{name}": {each}' for each in label_problems]
    assert created(metadata={"name": name}).messages == expected


def test_the_finalizers_of_the_spec_are_checked() -> None:
    written = created(metadata={"name": "one"}, spec={"finalizers": ["nodomain"]})
    assert written.messages == [
        'spec.finalizers: Invalid value: "nodomain": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]


def test_an_update_keeps_finalizers_status_and_the_label() -> None:
    metadata = {**ACTIVE["metadata"], "labels": {"l": "4"}, "uid": "u", "resourceVersion": "5"}
    written = updated(ACTIVE, metadata=metadata, spec=None, status={"phase": "Terminating"})
    assert written.errors == []
    assert written.object["spec"] == ACTIVE["spec"]
    assert written.object["status"] == ACTIVE["status"]
    assert written.object["metadata"]["labels"] == {"l": "4", "kubernetes.io/metadata.name": "one"}


def test_finalize_changes_only_the_finalizers() -> None:
    written = updated(GOING, "finalize", spec={}, status={"phase": "Active"})
    assert written.errors == []
    assert written.object["spec"] == {}
    assert written.object["status"] == GOING["status"]
    assert updated(GOING, "finalize", spec={"finalizers": ["a.b/c", "nodomain"]}).messages == [
        'spec.finalizers[1]: Invalid value: "nodomain": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]


@pytest.mark.parametrize(
    ("old", "phase", "messages"),
    [
        (ACTIVE, "Active", []),
        (GOING, "Terminating", []),
        (
            ACTIVE,
            "Terminating",
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
        ),
        (
            GOING,
            "Active",
            ["status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"],
        ),
    ],
)
def test_the_phase_must_match_the_deletion_timestamp(old: dict[str, Any], phase: str, messages: list[str]) -> None:
    written = updated(old, "status", spec={"finalizers": []}, status={"phase": phase})
    assert written.messages == messages
    assert written.object["spec"] == old["spec"]


def test_a_deleted_namespace_is_terminating_without_a_grace_period() -> None:
    obj = {**ACTIVE, "metadata": {**GOING["metadata"], "deletionGracePeriodSeconds": 0}}
    STRATEGY.begin_termination(context(), obj)
    assert obj == GOING


def test_the_finalizers_of_a_stored_namespace_are_kept() -> None:
    obj = stored("v1", "Namespace", GOING)
    assert STRATEGY.finalizers(obj) == ["kubernetes"]
    assert STRATEGY.selectable(obj) == {"status.phase": "Terminating"}
    assert STRATEGY.finalizers(stored("v1", "Namespace", {**GOING, "spec": {}})) == ()
    assert STRATEGY.returns_deleted
