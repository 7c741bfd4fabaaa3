"""Tests of webhooks: their requests, and the effects of their responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ctrlmgr.admission.webhooks.hooks import VALIDATING, Hooks
from ctrlmgr.admission.webhooks.webhook_selection import invocation_of
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.calls.call import Reply
from tests.admission.stage import Write
from tests.admission.webhooks.hooked import WebhookCluster, allow, deny, patch, patched
from tests.kinds.stage import KINDS


def label(key: str, value: str) -> dict[str, Any]:
    return {"op": "add", "path": f"/metadata/labels/{key}", "value": value}


LABELS = {"op": "add", "path": "/metadata/labels", "value": {"seen": "1"}}


def test_a_denial_contains_the_hooks_message_and_nothing_is_stored() -> None:
    hooked = WebhookCluster(no=deny(message="because", code=418, reason="Odd"))
    hooked.configure("validating", "c", {"name": "no.example.com"})
    answer = hooked.create("x")
    assert (answer.code, answer.body["reason"]) == (418, "Odd")
    assert answer.message == 'admission webhook "no.example.com" denied the request: because'
    assert hooked.stage.send("GET", "/api/v1/namespaces/shop/configmaps/x").code == 404


def test_a_denying_hook_is_called_once() -> None:
    """The engine does not call the webhook again if other writes intervene between two attempts of a write."""

    def slowly(request: Any) -> Any:
        hooked.stage.namespace("other")
        return deny()(request)

    hooked = WebhookCluster(no=slowly)
    here = {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
    hooked.configure("validating", "c", {"name": "no.example.com", "namespaceSelector": here})
    assert hooked.create("x").code == 400
    assert hooked.paths == ["no"]


def test_validating_hooks_receive_the_stored_object_and_mutating_hooks_the_request() -> None:
    hooked = WebhookCluster(m=patch(LABELS), v=allow(warnings=["careful"]))
    hooked.configure("mutating", "c", {"name": "m.example.com"})
    hooked.configure("validating", "c", {"name": "v.example.com"})
    answer = hooked.create("x")
    assert (answer.code, answer.body["metadata"]["labels"], answer.warnings) == (201, {"seen": "1"}, ("careful",))
    (_, mutating), (_, validating) = hooked.asked
    assert "uid" not in mutating["object"]["metadata"]
    assert validating["object"]["metadata"]["uid"] == answer.body["metadata"]["uid"]
    assert validating["object"]["metadata"]["labels"] == {"seen": "1"}


def test_access_review_contains_the_user_and_the_request() -> None:
    hooked = WebhookCluster(v=allow())
    hooked.configure("validating", "c", {"name": "v.example.com"})
    hooked.stage.send(
        "POST",
        "/api/v1/namespaces/shop/configmaps",
        {"metadata": {"name": "x"}},
        query={"dryRun": "All", "fieldManager": "me", "fieldValidation": "Strict"},
    )
    ((_, asked),) = hooked.asked
    assert asked["kind"] == asked["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert (asked["name"], asked["namespace"], asked["operation"], asked["dryRun"]) == ("x", "shop", "CREATE", True)
    assert asked["userInfo"] == {"username": "alice", "groups": ["system:masters"]}
    options = {"dryRun": ["All"], "fieldManager": "me", "fieldValidation": "Strict"}
    assert asked["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", **options}


def test_a_mutation_reinvokes_earlier_hooks_once_if_they_request_that() -> None:
    hooked = WebhookCluster(a=patch(LABELS), b=patch(label("b", "1")), c=patch(label("c", "1")))
    wants, never = {"reinvocationPolicy": "IfNeeded"}, {"reinvocationPolicy": "Never"}
    hooked.configure(
        "mutating",
        "all",
        {"name": "a.example.com", **never},
        {"name": "b.example.com", **wants},
        {"name": "c.example.com", **never},
    )
    assert hooked.create("x").body["metadata"]["labels"] == {"seen": "1", "b": "1", "c": "1"}
    assert hooked.paths == ["a", "b", "c", "b"]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(problem="EOF"), 'failed to call webhook: Post "https://hooks.invalid/v?timeout=10s": EOF'),
        (Reply(404, "text/plain", b"x"), "failed to call webhook: the server could not find the requested resource"),
        (
            Reply(500, "text/plain", b"went wrong\n"),
            'failed to call webhook: an error on the server ("went wrong") has prevented the request from succeeding',
        ),
        (
            Reply(403, "application/json", b'{"kind":"Status","message":"own words"}'),
            "failed to call webhook: own words",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_an_unreachable_hook_fails_the_write_or_is_ignored(reply: Reply, problem: str, policy: str) -> None:
    hooked = WebhookCluster(v=lambda request: reply)
    hooked.configure("validating", "c", {"name": "v.example.com", "failurePolicy": policy})
    answer = hooked.create("x")
    if policy == "Ignore":
        assert answer.code == 201
        return
    assert answer.code == 500
    assert answer.message == f'Internal error occurred: failed calling webhook "v.example.com": {problem}'


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ({"uid": "other", "allowed": True}, 'expected response.uid="'),
        ({"allowed": True, "patch": "W10="}, "validating webhook may not return response.patch"),
        ({"allowed": True, "patchType": "JSONPatch"}, "validating webhook may not return response.patchType"),
    ],
)
def test_a_response_with_another_uid_is_refused(response: dict[str, Any], problem: str) -> None:
    hooked = WebhookCluster(v=lambda request: response)
    hooked.configure("validating", "c", {"name": "v.example.com"})
    answer = hooked.create("x")
    assert f"received invalid webhook response: {problem}" in answer.message


def test_a_dry_run_calls_only_hooks_without_side_effects() -> None:
    hooked = WebhookCluster(v=allow())
    hooked.configure("validating", "c", {"name": "v.example.com"})
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/c"
    stored = hooked.stage.send("GET", path).body
    assert stored["webhooks"][0]["sideEffects"] == "None"
    answer = hooked.stage.send(
        "POST", "/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "x"}}, query={"dryRun": "All"}
    )
    assert (answer.code, hooked.paths) == (201, ["v"])


@pytest.mark.parametrize(
    ("hook", "asked"),
    [
        (
            {"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
            False,
        ),
        ({"rules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*"]}]}, False),
        ({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]}, True),
        (
            {
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["*"],
                        "resources": ["*"],
                        "scope": "Cluster",
                    }
                ]
            },
            False,
        ),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"objectSelector": {"matchExpressions": [{"key": "l", "operator": "Exists"}]}}, True),
        ({"objectSelector": {"matchLabels": {"l": "2"}}}, False),
    ],
)
def test_a_hook_is_called_for_selected_objects(hook: dict[str, Any], asked: bool) -> None:
    hooked = WebhookCluster(v=allow())
    hooked.configure("validating", "c", {"name": "v.example.com", **hook})
    assert hooked.create("x", metadata={"labels": {"l": "1"}}).code == 201
    assert bool(hooked.paths) is asked


def test_a_hook_receives_the_version_of_its_rules() -> None:
    rules = [
        {
            "apiGroups": ["autoscaling"],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["horizontalpodautoscalers"],
        }
    ]
    hooked = WebhookCluster(m=patch({"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 70}))
    hooked.configure("mutating", "c", {"name": "m.example.com", "rules": rules})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    }
    path = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "metrics": [metric]}
    answer = hooked.stage.send("POST", path, {"metadata": {"name": "h"}, "spec": spec})
    ((_, asked),) = hooked.asked
    assert asked["kind"]["version"] == "v1"
    assert asked["requestKind"]["version"] == "v2"
    assert asked["object"]["spec"]["targetCPUUtilizationPercentage"] == 60
    assert answer.body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70


def test_webhook_configurations_bypass_webhooks() -> None:
    hooked = WebhookCluster(v=deny())
    hooked.configure("validating", "c", {"name": "v.example.com"})
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/c"
    assert hooked.stage.send("DELETE", path).code == 200
    assert hooked.create("x").code == 201


def test_a_deletecollection_calls_hooks_for_each_object_without_names() -> None:
    hooked = WebhookCluster(v=allow())
    for name in ("a", "b"):
        hooked.create(name)
    hooked.configure("validating", "c", {"name": "v.example.com"})
    assert hooked.stage.send("DELETE", "/api/v1/namespaces/shop/configmaps").code == 200
    assert [request["oldObject"]["metadata"]["name"] for _, request in hooked.asked] == ["a", "b"]
    assert not any("name" in request for _, request in hooked.asked)


@pytest.mark.parametrize(
    ("operations", "code", "problem"),
    [
        (
            [{"op": "test", "path": "/data/a", "value": "2"}],
            500,
            "Internal error occurred: testing value /data/a failed: test failed",
        ),
        (
            [{"op": "add", "path": "/spec/x", "value": "2"}],
            500,
            'Internal error occurred: add operation does not apply: doc is missing path: "/spec/x": missing value',
        ),
        (
            {"op": "add"},
            500,
            'Internal error occurred: failed calling webhook "m.example.com": received undecodable patch in webhook '
            "response: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            [{"op": "replace", "path": "/metadata/namespace", "value": "other"}],
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
def test_an_inapplicable_patch_is_refused_with_its_reason(operations: Any, code: int, problem: str) -> None:
    hooked = WebhookCluster(m=lambda request: patched(operations))
    hooked.create("there", data={"a": "1"})
    hooked.configure("mutating", "c", {"name": "m.example.com"})
    for answer in (
        hooked.create("x", data={"a": "1"}),
        hooked.stage.send("PUT", f"{MAPS}/there", {"metadata": {"name": "there"}, "data": {"a": "1", "b": "2"}}),
    ):
        assert (answer.code, answer.message) == (code, problem)
    assert hooked.stage.send("GET", f"{MAPS}/x").code == 404


def test_mutating_hooks_of_a_scale_receive_the_request_and_validating_hooks_the_scale() -> None:
    hooked = WebhookCluster(m=allow(), v=allow())
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    base = "/apis/apps/v1/namespaces/shop/deployments"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = hooked.stage.send("POST", base, {"metadata": {"name": "d"}, "spec": spec}).body["metadata"]
    hooked.configure("mutating", "c", {"name": "m.example.com"})
    hooked.configure("validating", "c", {"name": "v.example.com"})
    scale = {"metadata": {"name": "d", "namespace": "shop"}, "spec": {"replicas": 2}}
    assert hooked.stage.send("PUT", f"{base}/d/scale", scale).code == 200
    (_, mutating), (_, validating) = hooked.asked
    sent = mutating["object"]["metadata"]
    assert {"uid", "resourceVersion"}.isdisjoint(sent)
    assert mutating["object"]["spec"] == {"replicas": 2}
    assert "selector" not in mutating["object"].get("status", {})
    whole = (made["uid"], made["resourceVersion"])
    for shown in (mutating["oldObject"], validating["oldObject"], validating["object"]):
        assert (shown["metadata"]["uid"], shown["metadata"]["resourceVersion"]) == whole
    assert validating["object"]["status"] == {"replicas": 0, "selector": "a=b"}
    assert hooked.stage.send("PATCH", f"{base}/d/scale", {"spec": {"replicas": 3}}, media_type=MERGE_PATCH).code == 200
    assert hooked.asked[-2][1]["object"]["metadata"]["uid"] == made["uid"], "a patch is made of what is there"


def test_hooks_receive_a_scale_as_a_scale() -> None:
    hooked = WebhookCluster(m=patch({"op": "replace", "path": "/spec/replicas", "value": 5}))
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    base = "/apis/apps/v1/namespaces/shop/deployments"
    hooked.stage.send("POST", base, {"metadata": {"name": "d"}, "spec": spec})
    hooked.configure("mutating", "c", {"name": "m.example.com"})
    scale = {"metadata": {"name": "d", "namespace": "shop"}, "spec": {"replicas": 2}}
    assert hooked.stage.send("PUT", f"{base}/d/scale", scale).body["spec"] == {"replicas": 5}
    ((_, asked),) = hooked.asked
    assert (asked["kind"]["kind"], asked["subResource"], asked["object"]["spec"]) == ("Scale", "scale", {"replicas": 2})
    assert asked["oldObject"]["spec"] == {"replicas": 1}


def test_hooks_of_bindings_receive_the_resource_of_the_url() -> None:
    hooked = WebhookCluster(a=allow())
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert hooked.stage.send("POST", "/api/v1/namespaces/shop/pods", pod).code == 201
    hooked.configure("validating", "c", {"name": "a.example.com"})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    hooked.stage.send("POST", "/api/v1/namespaces/shop/bindings", binding)
    hooked.stage.send("POST", "/api/v1/namespaces/shop/pods/p/binding", binding)
    asked = [(each["resource"]["resource"], each.get("subResource")) for _, each in hooked.asked]
    assert asked == [("bindings", None), ("pods", "binding")]


def test_a_dry_run_calls_hooks_once_despite_a_conflict() -> None:
    hooked = WebhookCluster()
    others = iter(range(9))

    def meanwhile(request: Mapping[str, Any]) -> dict[str, Any]:
        hooked.stage.namespace(f"other-{next(others)}")  # the webhook is not called for this operation
        return {"allowed": True}

    hooked.answers["a"] = meanwhile
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
    hooked.configure("validating", "c", {"name": "a.example.com", "rules": rules})
    body = {"metadata": {"name": "m"}}
    made = hooked.stage.send("POST", "/api/v1/namespaces/shop/configmaps", body, query={"dryRun": "All"})
    assert (made.code, hooked.paths) == (201, ["a"])


def meanwhile_in(hooked: WebhookCluster, act: Any) -> Any:
    """Return a webhook response that allows every request; before each response, `act` is called with the number of the
    request.
    """
    numbers = iter(range(9))

    def answered(request: Mapping[str, Any]) -> dict[str, Any]:
        act(next(numbers))
        return {"allowed": True}

    return answered


CONFIG_MAPS = [
    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
]
MAPS = "/api/v1/namespaces/shop/configmaps"
MARKED = {"matchLabels": {"marked": "yes"}}
NEW = {"matchExpressions": [{"key": "new", "operator": "Exists"}]}
MERGE_PATCH = "application/merge-patch+json"


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        pytest.param("POST", MAPS, {"metadata": {"name": "there"}}, 409, id="a name that is taken"),
        pytest.param("PUT", f"{MAPS}/there", {"metadata": {"name": "there"}}, 200, id="an update that changes nothing"),
        pytest.param(
            "PUT", f"{MAPS}/there", {"metadata": {"name": "there", "labels": {"a": "b!"}}}, 422, id="an invalid update"
        ),
    ],
)
def test_an_unrelated_write_does_not_call_hooks_again(method: str, path: str, body: dict[str, Any], code: int) -> None:
    hooked = WebhookCluster()
    hooked.create("there")
    hooked.answers["a"] = meanwhile_in(hooked, lambda number: hooked.stage.namespace(f"other-{number}"))
    hooked.configure("mutating", "c", {"name": "a.example.com", "rules": CONFIG_MAPS})
    assert hooked.stage.send(method, path, body).code == code
    assert hooked.paths == ["a"]


def test_a_creation_that_conflicts_calls_hooks_once() -> None:
    hooked = WebhookCluster()
    made = meanwhile_in(hooked, lambda number: hooked.create("x") if not number else None)
    hooked.answers["a"] = made
    hooked.configure("validating", "c", {"name": "a.example.com", "rules": CONFIG_MAPS, "objectSelector": MARKED})
    answer = hooked.create("x", metadata={"labels": {"marked": "yes"}})
    assert (answer.code, answer.body["reason"], hooked.paths) == (409, "AlreadyExists", ["a"])


def test_an_update_that_conflicts_calls_hooks_again() -> None:
    hooked = WebhookCluster()
    hooked.create("x", metadata={"labels": {"marked": "yes"}})

    def change(number: int) -> None:
        if not number:
            fields = {"metadata": {"name": "x", "labels": {"marked": "no"}}}
            assert hooked.stage.send("PUT", f"{MAPS}/x", fields).code == 200

    hooked.answers["a"] = meanwhile_in(hooked, change)
    hooked.configure("validating", "c", {"name": "a.example.com", "rules": CONFIG_MAPS, "objectSelector": NEW})
    patched = hooked.stage.send("PATCH", f"{MAPS}/x", {"metadata": {"labels": {"new": "1"}}}, media_type=MERGE_PATCH)
    assert (patched.code, patched.body["metadata"]["labels"]) == (200, {"marked": "no", "new": "1"})
    assert hooked.paths == ["a", "a"]
    assert [request["oldObject"]["metadata"]["labels"]["marked"] for _, request in hooked.asked] == ["yes", "no"]


@pytest.mark.parametrize(
    ("selector", "is_asked"), [({}, True), ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False)]
)
def test_a_hook_with_an_object_selector_is_not_called_for_connections(selector: dict[str, Any], is_asked: bool) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}]
    webhook = {"name": "a.example.com", "rules": rules, "objectSelector": selector, "admissionReviewVersions": ["v1"]}
    kind = "ValidatingWebhookConfiguration"
    version = "admissionregistration.k8s.io/v1"
    fields = {"apiVersion": version, "kind": kind, "metadata": {"name": "c"}, "webhooks": [webhook]}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    options = {"command": ["sh"], "metadata": {}}
    write = Write("v1/pods", options, None, fields, namespace, operation=Verb.CONNECT, subresource="exec").attributes
    (hook,) = Hooks(VALIDATING).found(write.view)
    assert (invocation_of(hook, write, KINDS) is not None) is is_asked


def test_hooks_receive_a_service_as_kubernetes_stores_it() -> None:
    hooked = WebhookCluster(a=allow())
    hooked.configure("validating", "c", {"name": "a.example.com"})
    spec = {"type": "ExternalName", "externalName": "x.invalid", "internalTrafficPolicy": "Cluster"}
    path = "/api/v1/namespaces/shop/services"
    made = hooked.stage.send("POST", path, {"metadata": {"name": "s"}, "spec": spec})
    assert made.code == 201
    assert "internalTrafficPolicy" not in made.body["spec"]
    assert hooked.asked[-1][1]["object"]["spec"]["internalTrafficPolicy"] == "Cluster"


def condition(expression: str) -> dict[str, Any]:
    return {"matchConditions": [{"name": "c", "expression": expression}]}


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("expression", "is_asked"),
    [
        ("object.metadata.name == 'x'", True),
        ("object.metadata.name == 'y'", False),
        ("request.operation == 'CREATE' && oldObject == null && !request.dryRun", True),
        ("!has(request.subResource) && request.resource.resource == 'configmaps' && request.namespace == 'shop'", True),
        ("authorizer.requestResource.check('get').allowed()", True),
        ("object.data.nope == 'x' || request.name == 'x'", True),
    ],
)
def test_a_hook_is_called_if_its_match_conditions_are_true(kind: str, expression: str, is_asked: bool) -> None:
    hooked = WebhookCluster(v=allow())
    hooked.configure(kind, "c", {"name": "v.example.com", **condition(expression)})
    assert hooked.create("x").code == 201
    assert hooked.paths == (["v"] if is_asked else [])


def test_a_failing_match_condition_fails_the_write_or_skips_the_hook() -> None:
    hooked = WebhookCluster(v=allow())
    hook = {"name": "v.example.com", **condition("object.data.nope == 'x'")}
    hooked.configure("validating", "c", {**hook, "failurePolicy": "Ignore"})
    assert (hooked.create("x").code, hooked.paths) == (201, [])
    hooked.configure("validating", "d", hook)
    answer = hooked.create("y")
    assert answer.code == 403
    problem = "expression 'object.data.nope == 'x'' resulted in error: no such key: data"
    assert answer.message == f'configmaps "y" is forbidden: {problem}'


def test_one_false_match_condition_decides() -> None:
    hooked = WebhookCluster(v=allow())
    conditions = [{"name": "a", "expression": "object.data.nope == 'x'"}, {"name": "b", "expression": "false"}]
    hooked.configure("validating", "c", {"name": "v.example.com", "matchConditions": conditions})
    assert (hooked.create("x").code, hooked.paths) == (201, [])


def test_match_conditions_above_the_cost_limit_fail_the_write() -> None:
    hooked = WebhookCluster(v=allow())
    costly = "[1,2,3,4,5,6,7,8,9].all(a, object.data.all(b, object.data.all(c, object.data.all(d, size(d) > 0))))"
    hooked.configure("validating", "c", {"name": "v.example.com", **condition(costly)})
    answer = hooked.create("x", data={f"k{each}": "" for each in range(40)})
    assert answer.code == 403
    assert "operation cancelled: actual cost limit exceeded" in answer.message


def test_an_invalid_match_condition_is_refused_with_its_path() -> None:
    answer = WebhookCluster().configure("mutating", "c", {"name": "v.example.com", **condition("foo == 1")})
    assert answer.code == 422
    (cause,) = answer.body["details"]["causes"]
    assert cause["field"] == "webhooks[0].matchConditions[0].expression"
    assert cause["message"].splitlines() == [
        "Invalid value: \"foo == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo'"
        " (in container '')",
        " | foo == 1",
        " | ^",
    ]
