"""Tests of the responses of admission functions to AdmissionReviews, and of the JSON patches in these responses."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from ctrlmgr import App, Refused, Untyped, Write
from ctrlmgr.engine.patch import json_patch
from ctrlmgr.errors import BadRequest, Conflict
from ctrlmgr.framework.app_admission import AppAdmission
from ctrlmgr.framework.cached_objects import Cache
from ctrlmgr.framework.webhooks.admission_reviews import answer
from ctrlmgr.framework.webhooks.json_difference import difference

NAMES = ("a", "b/c", "d~e", "~1")


def generated(random: random.Random, depth: int = 3) -> Any:
    if depth and random.random() < 0.6:
        return {name: generated(random, depth - 1) for name in NAMES if random.random() < 0.6}
    return random.choice([None, 1, "x", True, [1, {"a": 2}], []])


@pytest.mark.parametrize("seed", range(200))
def test_a_patch_transforms_the_object(seed: int) -> None:
    chosen = random.Random(seed)
    before, after = ({"metadata": {"name": "x"}, "spec": generated(chosen)} for _ in range(2))
    patch = [*difference(before, after)]
    assert json_patch(before, patch) == after
    assert bool(patch) == (before != after)


def review_response(declared: AppAdmission, **request: Any) -> dict[str, Any]:
    body = {"request": {"uid": "1", "operation": "CREATE", "userInfo": {"username": "me", "groups": ["g"]}, **request}}
    answered = json.loads(answer(declared, json.dumps(body).encode(), Cache({}, "")))
    assert (answered["apiVersion"], answered["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert answered["response"]["uid"] == "1"
    response: dict[str, Any] = answered["response"]
    return response


def rule(validates: bool = False) -> AppAdmission:
    @App("rules").admission("v1/Pod", operations=["CREATE", "UPDATE", "DELETE"], validates=validates)
    def labelled(pod: Untyped, write: Write) -> None:
        match pod.name:
            case "refused":
                raise Refused("no")
            case "conflict":
                raise Conflict("read it again")
            case "breaks":
                raise ValueError("oops")
        if write.old is not None:
            write.warn(f"{write.operation} by {write.user} of {write.old.name}, dry: {write.dry_run}")
        pod.labels["by"] = write.user

    return labelled


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": None}, "spec": {"x": None}}


def test_a_response_contains_only_changes_of_the_function() -> None:
    response = review_response(rule(), object=POD)
    assert response["allowed"]
    operations = json.loads(base64.b64decode(response["patch"]))
    assert operations == [{"op": "add", "path": "/metadata/labels", "value": {"by": "me"}}]
    same = {**POD, "metadata": {"name": "p", "labels": {"by": "me"}}}
    assert review_response(rule(), object=same) == {"uid": "1", "allowed": True}
    assert review_response(rule(validates=True), object=POD) == {"uid": "1", "allowed": True}


def test_old_objects_and_warnings_are_passed_on() -> None:
    gone = review_response(rule(), operation="DELETE", object=None, oldObject=POD, dryRun=True)
    assert gone == {"uid": "1", "allowed": True, "warnings": ["DELETE by me of p, dry: True"]}


@pytest.mark.parametrize(
    ("name", "code", "reason", "message"),
    [
        ("refused", 403, "Forbidden", "no"),
        ("conflict", 409, "Conflict", "read it again"),
        ("breaks", 500, "InternalError", 'admission plugin "labelled" failed: ValueError: oops'),
    ],
)
def test_refusals_have_the_same_code_as_in_the_server(name: str, code: int, reason: str, message: str) -> None:
    response = review_response(rule(), object={**POD, "metadata": {"name": name}})
    assert not response["allowed"]
    assert (response["status"]["code"], response["status"]["reason"]) == (code, reason)
    assert message in response["status"]["message"]


def test_an_invalid_review_is_refused() -> None:
    with pytest.raises(BadRequest, match="not an AdmissionReview"):
        answer(rule(), b'{"request": 1}', Cache({}, ""))
    assert review_response(rule())["status"]["code"] == 400
