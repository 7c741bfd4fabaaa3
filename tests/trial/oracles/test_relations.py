"""Objects are assigned to the custom resources for which they were made."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.trial.oracles.kept_log import named
from ctrlmgr.trial.oracles.relations import belongs_to, custom_resources, owners_in
from tests.trial.oracles.played import Played, config_map, owner, widget


def stored(name: str, **metadata: Any) -> Object:
    return Object.from_dict(config_map(name, namespace="shop", uid="1", **metadata))


REFERRED = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x", "uid": "2"}}
CUSTOM = Object.from_dict(widget("db", metadata={"name": "db", "namespace": "shop", "uid": "2"}))


@pytest.mark.parametrize(
    ("obj", "belongs"),
    [
        (stored("db"), True),
        (stored("db-0"), True),
        (stored("config-of-db"), True),
        (stored("db2"), False),
        (stored("adb"), False),
        (stored("other", labels={"app": "db"}), True),
        (stored("other", annotations={"for": "shop/db"}), True),
        (
            stored("other", ownerReferences=owner(REFERRED)),
            True,
        ),
        (stored("other"), False),
    ],
)
def test_an_object_names_its_custom_resource(obj: Object, belongs: bool) -> None:
    assert belongs_to(obj, CUSTOM) is belongs


def test_objects_of_another_namespace_do_not_belong() -> None:
    elsewhere = Object.from_dict(config_map("db", namespace="other", uid="1"))
    assert not belongs_to(elsewhere, CUSTOM)


def test_owners_of_owners_are_found() -> None:
    played = Played()
    first = played.user_create(widget("a"))
    second = played.operator_create(config_map("b", ownerReferences=owner(first)))
    played.operator_create(config_map("c", ownerReferences=owner(second)))
    log = played.kept()
    last = next(each for each in log.end.values() if each.name == "c")
    assert [named(each) for each in owners_in(log.end, last)] == ["ConfigMap shop/b", "Widget shop/a"]
    assert {str(each) for each in custom_resources(log)} == {"widgets.example.com"}
