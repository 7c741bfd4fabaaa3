"""Oracle `data-deleted`."""

from __future__ import annotations

from ctrlmgr.trial.oracles.data_deletions import data_deletions, data_overwrites
from tests.trial.oracles.played import Played, config_map, owner, secret, widget


def test_a_deletion_without_a_reason_is_found() -> None:
    played = Played()
    played.user_create(widget("a"))
    created = played.operator_create(secret("a-password"))
    played.operator_delete("Secret", "a-password")
    [found] = data_deletions(played.kept())
    assert found.object == "Secret shop/a-password"
    at = created["metadata"]["resourceVersion"]
    assert found.message.endswith(f"the user wrote no related object since its creation at revision {at}.")
    assert found.revision == played.head


def test_a_deletion_for_the_previous_resource_of_the_same_name_is_found() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.user_delete("Widget", "a")
    played.user_create(widget("a"))
    played.operator_create(secret("a-password"))
    played.operator_delete("Secret", "a-password")
    assert [each.object for each in data_deletions(played.kept())] == ["Secret shop/a-password"]


def test_a_secret_of_the_user_is_found() -> None:
    played = Played()
    played.user_create(secret("shared"))
    played.user_create(widget("a"))
    played.operator_delete("Secret", "shared")
    [found] = data_deletions(played.kept())
    assert found.message.endswith("the operator did not create it.")


def test_deletions_that_the_user_asked_for_are_no_findings() -> None:
    played = Played()
    made = played.user_create(widget("a"))
    played.operator_create(secret("a-password"))
    played.operator_create(secret("owned", ownerReferences=owner(made)))
    played.user_create(secret("mine"))
    played.user_patch("Widget", "a", {"spec": {"size": 1}})
    played.operator_delete("Secret", "a-password")
    played.operator_delete("Secret", "owned")
    played.user_delete("Secret", "mine")
    assert data_deletions(played.kept()) == []


def test_a_mark_for_deletion_counts_once_and_other_kinds_are_no_data() -> None:
    played = Played()
    played.operator_create(secret("a-password", finalizers=["example.com/keep"]))
    played.operator_create(config_map("a-config"))
    played.operator_delete("ConfigMap", "a-config")
    played.operator_delete("Secret", "a-password")
    played.operator_patch("Secret", "a-password", {"metadata": {"finalizers": None}})
    assert [each.object for each in data_deletions(played.kept())] == ["Secret shop/a-password"]


def test_a_replaced_value_is_found_once() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.operator_create(secret("a-password"))
    first = played.operator_patch("Secret", "a-password", {"stringData": {"key": "y"}})
    played.operator_patch("Secret", "a-password", {"stringData": {"key": "z"}})
    [found] = data_overwrites(played.kept())
    assert found.object == "Secret shop/a-password"
    assert found.message.startswith("The operator replaced the value of key in Secret shop/a-password, although")
    assert str(found.revision) == first["metadata"]["resourceVersion"]


def test_added_values_and_requested_values_are_no_findings() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.operator_create(secret("a-password"))
    played.operator_patch("Secret", "a-password", {"stringData": {"other": "y"}})
    played.user_patch("Widget", "a", {"spec": {"size": 1}})
    played.operator_patch("Secret", "a-password", {"stringData": {"key": "z"}})
    assert data_overwrites(played.kept()) == []
