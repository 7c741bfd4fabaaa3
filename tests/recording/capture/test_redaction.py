from __future__ import annotations

import base64
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.errors import SettingsError
from ctrlmgr.recording.capture.redaction import DEFAULT, REDACTED, Redaction

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def redacted(rules: tuple[str, ...], kind: str, fields: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    identity = {"name": "n", "namespace": "a", "uid": "u", "resourceVersion": "5", **metadata}
    obj = Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": identity, **fields})
    shown = Redaction(rules).applied(obj)
    assert (shown.revision, shown.key) == (5, obj.key)
    return shown.to_dict()


def test_the_data_of_secrets_is_replaced_by_default() -> None:
    data = {"data": {"password": "aHVudGVyMg=="}, "type": "Opaque"}
    annotations = {APPLIED: '{"data":{"password":"aHVudGVyMg=="}}', "b": "c"}
    shown = redacted(DEFAULT, "Secret", data, annotations=annotations)
    assert base64.b64decode(shown["data"]["password"]).decode() == REDACTED
    assert (shown["type"], shown["metadata"]["annotations"]) == ("Opaque", {APPLIED: REDACTED, "b": "c"})
    assert "aHVudGVyMg" not in str(shown)


def test_other_kinds_are_not_redacted() -> None:
    assert redacted(DEFAULT, "ConfigMap", {"data": {"a": "b"}})["data"] == {"a": "b"}


def test_a_rule_descends_into_lists() -> None:
    containers = [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"x": "y"}}]}]
    shown = redacted(("pods:spec.containers.env.value",), "Pod", {"spec": {"containers": containers}})
    assert shown["spec"]["containers"][0]["env"] == [
        {"name": "A", "value": REDACTED},
        {"name": "B", "valueFrom": {"x": "y"}},
    ]


def test_a_rule_for_a_map_or_a_list_keeps_its_shape() -> None:
    fields = {"data": {"a": "b"}, "binaryData": {"c": "AA=="}, "list": [1, None, {"d": True}]}
    shown = redacted(("configmaps:data", "configmaps:binaryData", "configmaps:list"), "ConfigMap", fields)
    assert shown["data"] == {"a": REDACTED}
    assert base64.b64decode(shown["binaryData"]["c"]).decode() == REDACTED
    assert shown["list"] == [REDACTED, None, {"d": REDACTED}]


@pytest.mark.parametrize("rule", ["", "pods", "pods:", ":data", "pods:spec..x", "pods:.spec"])
def test_an_invalid_rule_is_refused(rule: str) -> None:
    with pytest.raises(SettingsError, match="is not a rule"):
        Redaction([rule])
