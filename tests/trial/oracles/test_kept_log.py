"""The kept log shows the events of a run with the states between them."""

from __future__ import annotations

from ctrlmgr.trial.oracles.kept_log import fields_of, named, place_of, written_by
from tests.trial.oracles.played import Played, config_map, widget


def run() -> Played:
    played = Played()
    played.user_create(widget("a", spec={"size": 1}))
    played.operator_create(config_map("a-config"))
    played.user_patch("Widget", "a", {"spec": {"size": 2}})
    played.operator_patch("ConfigMap", "a-config", {"data": {"size": "2"}})
    played.operator_delete("ConfigMap", "a-config")
    return played


def test_events_are_assigned_to_the_operator_and_to_the_user() -> None:
    log = run().kept()
    assert [named(each.event.object) for each in log.by_operator] == ["ConfigMap shop/a-config"] * 3
    assert [named(each.event.object) for each in log.run if log.is_user(each.event)] == ["Widget shop/a"] * 2
    assert len(log.at_rest) == 2


def test_each_event_has_the_object_before_it() -> None:
    log = run().kept()
    _, steps = next(each for each in written_by(log.run) if each[0].resource.plural == "configmaps")
    assert [fields_of(each.before).get("data") for each in steps] == [None, None, {"size": "2"}]


def test_states_of_any_revision() -> None:
    played = run()
    log = played.kept()
    first = log.run[0].event
    assert place_of(first.object) in log.at(first.revision)
    assert place_of(first.object) not in log.at(first.revision - 1)
    assert [named(each) for each in log.end.values() if each.namespace == "shop"] == ["Widget shop/a"]
    assert "managedFields" not in fields_of(log.end[place_of(first.object)])["metadata"]


def test_events_and_leases_are_left_out() -> None:
    played = Played()
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}, "spec": {}}
    played.send("POST", "/apis/coordination.k8s.io/v1/namespaces/shop/leases", lease)
    assert played.head > played.started_at
    assert played.kept().run == []
