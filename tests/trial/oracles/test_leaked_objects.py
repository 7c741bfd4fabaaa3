"""Oracles `leaked-object` and `deletion-never-ends`."""

from __future__ import annotations

from ctrlmgr.trial.oracles.leaked_objects import endless_deletions, leaked_objects
from tests.trial.oracles.played import Played, config_map, owner, widget


def test_an_object_that_stays_after_the_custom_resource_is_found() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.operator_create(config_map("a-config"))
    assert leaked_objects(played.kept()) == []
    played.user_delete("Widget", "a")
    [found] = leaked_objects(played.kept())
    assert found.object == "ConfigMap shop/a-config"
    assert found.message == (
        "The operator created ConfigMap shop/a-config for Widget shop/a, and left it when a was deleted."
    )
    assert leaked_objects(played.kept(quiet=False)) == []


def test_an_object_that_the_operator_deletes_is_no_leak() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.operator_create(config_map("a-config"))
    played.user_delete("Widget", "a")
    played.operator_delete("ConfigMap", "a-config")
    assert leaked_objects(played.kept()) == []


def test_objects_of_the_user_and_of_living_resources_are_no_leaks() -> None:
    played = Played()
    made = played.user_create(widget("b"))
    played.user_create(widget("a"))
    played.user_create(config_map("a-of-the-user"))
    played.operator_create(config_map("a-and-b"))
    played.operator_create(config_map("a-owned", ownerReferences=owner(made)))
    played.operator_create(config_map("shared"))
    played.user_delete("Widget", "a")
    assert leaked_objects(played.kept()) == []


def test_an_object_of_a_resource_that_was_created_again_is_no_leak() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.user_delete("Widget", "a")
    played.user_create(widget("a"))
    played.operator_create(config_map("a-config"))
    assert leaked_objects(played.kept()) == []


def test_a_deletion_with_a_remaining_finalizer_is_found() -> None:
    played = Played()
    played.user_create(widget("a"))
    played.operator_patch("Widget", "a", {"metadata": {"finalizers": ["example.com/cleanup"]}})
    assert endless_deletions(played.kept()) == []
    played.user_delete("Widget", "a")
    requested = played.head
    [found] = endless_deletions(played.kept())
    assert (
        found.message == "The deletion of Widget shop/a never ends: the finalizer example.com/cleanup is not removed."
    )
    assert found.revision == requested
    assert endless_deletions(played.kept(quiet=False)) == []
    played.operator_patch("Widget", "a", {"metadata": {"finalizers": None}})
    assert endless_deletions(played.kept()) == []
