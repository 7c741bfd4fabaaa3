"""Tests of match conditions: the variables of the expressions, and the requests that meet the conditions."""

from __future__ import annotations

import pytest

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, Requirement, path_attributes
from ctrlmgr.authorization.authorizer_match_conditions import ConditionCompiler, are_met
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.expressions.environment import NoValue

COMPILE = ConditionCompiler(FUNCTIONS).compile
JANE = User("jane", "7", ("dev", "ops"), {"acme.io/team": ("till",)})
PODS = Attributes("list", "/api/v1/namespaces/shop/pods", "", "v1", "pods", "", "shop")
SELECTED = PODS._replace(
    fields=(Requirement("spec.nodeName", "In", ("n1",)),),
    labels=(Requirement("app", "In", ("till", "web")), Requirement("old", "DoesNotExist")),
)
METRICS = path_attributes("get", "/metrics")


def met(*sources: str, asked: Attributes = PODS, user: User = JANE) -> bool:
    return are_met([COMPILE(each) for each in sources], user, asked)


@pytest.mark.parametrize(
    "source",
    [
        "request.user == 'jane' && request.uid == '7'",
        "'ops' in request.groups && request.groups.size() == 2",
        "request.extra['acme.io/team'] == ['till']",
        "has(request.resourceAttributes) && !has(request.nonResourceAttributes)",
        "request.resourceAttributes.namespace == 'shop' && request.resourceAttributes.verb == 'list'",
        "request.resourceAttributes.group == '' && request.resourceAttributes.version == 'v1'",
        "request.resourceAttributes.resource == 'pods'",
        "request.resourceAttributes.subresource == '' && request.resourceAttributes.name == ''",
        "!has(request.resourceAttributes.fieldSelector) && !has(request.resourceAttributes.labelSelector)",
        "request.resourceAttributes.?fieldSelector.requirements.orValue([]) == []",
        "!format.dns1123Label().validate(request.resourceAttributes.namespace).hasValue()",
    ],
)
def test_a_condition_reads_all_fields_of_a_resource_request(source: str) -> None:
    assert met(source)


def test_selectors_are_read_as_requirements() -> None:
    one = "request.resourceAttributes.fieldSelector.requirements"
    assert met(f"{one}.exists(r, r.key == 'spec.nodeName' && r.operator == 'In' && 'n1' in r.values)", asked=SELECTED)
    two = "request.resourceAttributes.labelSelector.requirements"
    assert met(f"{two}.map(r, r.key) == ['app', 'old'] && {two}[1].values == []", asked=SELECTED)
    assert met("!has(request.resourceAttributes.labelSelector.rawSelector)", asked=SELECTED)


def test_a_request_for_a_path_has_no_resource() -> None:
    path = "request.nonResourceAttributes"
    assert met(f"!has(request.resourceAttributes) && {path}.path == '/metrics' && {path}.verb == 'get'", asked=METRICS)
    with pytest.raises(NoValue) as failed:
        met("request.resourceAttributes.verb == 'get'", asked=METRICS)
    source, problem = "request.resourceAttributes.verb == 'get'", "no such key: resourceAttributes"
    assert str(failed.value) == f"cel evaluation error: expression '{source}' resulted in error: {problem}"


def test_missing_user_fields_exist_and_are_empty() -> None:
    assert met("request.uid == '' && request.groups == [] && request.extra == {}", user=User("john"))


def test_all_conditions_must_be_true_and_one_false_condition_decides() -> None:
    fails = "request.extra['none'][0] == 'a'"
    assert met("true", "request.user == 'jane'")
    assert not met("true", "false")
    assert not met(fails, "false")
    assert not met("false", fails)
    with pytest.raises(NoValue, match="no such key: none"):
        met("true", fails)


def test_several_failing_conditions_are_reported_together() -> None:
    with pytest.raises(NoValue) as failed:
        met("request.extra.a[0] == ''", "request.extra.b[0] == ''")
    told = [
        f"cel evaluation error: expression 'request.extra.{key}[0] == ''' resulted in error: no such key: {key}"
        for key in "ab"
    ]
    assert str(failed.value) == f"[{', '.join(told)}]"


def test_a_condition_above_the_cost_limit_fails() -> None:
    many = User("jane", "", tuple(map(str, range(300))))
    with pytest.raises(NoValue, match="operation cancelled: actual cost limit exceeded"):
        met("request.groups.all(a, request.groups.all(b, request.groups.all(c, c != '')))", user=many)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("request.time == 'now'", "compilation failed: ERROR: <input>:1:8: undefined field 'time'"),
        ("request.resourceAttributes.label == ''", "compilation failed: ERROR: <input>:1:27: undefined field 'label'"),
        ("request++", "compilation failed: ERROR: <input>:1:9: Syntax error:"),
        ("user == 'jane'", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'user'"),
        ("request.user", "must evaluate to bool but got string"),
        ("request", "must evaluate to bool but got kubernetes.SubjectAccessReviewSpec"),
        ("authorizer.path('/').check('get').allowed()", "compilation failed: ERROR: <input>:1:1: undeclared reference"),
    ],
)
def test_an_invalid_condition_is_refused_in_one_line(source: str, problem: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # what it says is looked at
        COMPILE(source)
    assert str(refused.value).startswith(problem)
    assert "\n" not in str(refused.value)
