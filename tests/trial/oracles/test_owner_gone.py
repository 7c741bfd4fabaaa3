"""Oracle `owner-gone`."""

from __future__ import annotations

from ctrlmgr.trial.oracles.owner_gone import owner_gone
from tests.trial.oracles.played import Played, config_map, owner, widget


def test_an_owner_that_never_existed_is_found() -> None:
    played = Played()
    played.user_create(widget("a"))
    ghost = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "uid": "no-such-uid"}}
    played.operator_create(config_map("a-config", ownerReferences=owner(ghost)))
    [found] = owner_gone(played.kept())
    assert found.object == "ConfigMap shop/a-config"
    assert "the owner Widget a, whose uid never existed" in found.message
    assert found.revision == played.head


def test_an_owner_in_another_namespace_is_found() -> None:
    played = Played()
    played.namespace("other")
    other = played.send("POST", "/apis/example.com/v1/namespaces/other/widgets", widget("a")).body
    played.operator_create(config_map("a-config", ownerReferences=owner(other)))
    [found] = owner_gone(played.kept())
    assert "the owner Widget a in another namespace, other" in found.message


def test_an_object_that_outlives_its_owner_is_found_if_the_run_became_quiet() -> None:
    played = Played()
    made = played.user_create(widget("a"))
    played.operator_create(config_map("a-config", ownerReferences=owner(made)))
    assert owner_gone(played.kept()) == []
    played.user_delete("Widget", "a")
    [found] = owner_gone(played.kept())
    assert found.message == (
        "ConfigMap shop/a-config still exists at the end of the run, although its owner Widget a is gone."
    )
    assert owner_gone(played.kept(quiet=False)) == []


def test_a_child_that_is_created_just_after_the_deletion_of_its_owner_is_no_wrong_owner() -> None:
    played = Played()
    made = played.user_create(widget("a"))
    played.user_delete("Widget", "a")
    played.operator_create(config_map("a-config", ownerReferences=owner(made)))
    played.operator_delete("ConfigMap", "a-config")
    assert owner_gone(played.kept()) == []
