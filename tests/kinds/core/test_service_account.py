from typing import Any

import pytest

from ctrlmgr.kinds.core.service_account import ServiceAccountStrategy
from tests.kinds.write import create, update

STRATEGY = ServiceAccountStrategy()
ENFORCE = {"kubernetes.io/enforce-mountable-secrets": "true"}
ACCOUNT: dict[str, Any] = {"metadata": {"name": "a", "namespace": "ns"}}


def test_references_to_secrets_are_names() -> None:
    secrets = {"secrets": [{"name": "s", "namespace": "other", "kind": "Secret"}, {"uid": "u"}]}
    assert create(STRATEGY, {**ACCOUNT, **secrets}).object["secrets"] == [{"name": "s"}, {}]
    assert update(STRATEGY, ACCOUNT, secrets).object["secrets"] == [{"name": "s"}, {}]


@pytest.mark.parametrize(
    ("before", "after", "warned"), [({}, {}, False), ({}, ENFORCE, True), (ENFORCE, ENFORCE, False)]
)
def test_a_new_deprecated_annotation_causes_a_warning(
    before: dict[str, str], after: dict[str, str], warned: bool
) -> None:
    advice = (
        "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate "
        "namespaces to isolate access to mounted secrets"
    )
    old = {"metadata": {**ACCOUNT["metadata"], "annotations": before}}
    new = {"metadata": {**old["metadata"], "annotations": after, "uid": "u", "resourceVersion": "5"}}
    assert update(STRATEGY, old, new).warnings == ([advice] if warned else [])


def test_a_new_account_with_the_deprecated_annotation_causes_a_warning() -> None:
    assert len(create(STRATEGY, {"metadata": {**ACCOUNT["metadata"], "annotations": ENFORCE}}).warnings) == 1
