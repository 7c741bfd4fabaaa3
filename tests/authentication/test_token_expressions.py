"""Tests of expressions on the claims of a token."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.authentication.id_tokens import token_user
from ctrlmgr.authentication.token_expressions import TokenExpressions
from ctrlmgr.authentication.trusted_issuer import Mapping, Rule, TrustedIssuer
from ctrlmgr.authentication.user import CREDENTIAL_ID, CredentialsRefused, User
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.expressions.environment import NoValue

NOW = 1_767_225_600
COMPILE = TokenExpressions(FUNCTIONS)
K8S = "claims.kubernetes__dot__io"
ACCOUNT = {
    "namespace": "shop",
    "serviceaccount": {"name": "till", "uid": "7"},
    "pod": {"name": "till-0"},
    "warnafter": 1_700_081_020,
}


def by(source: str) -> Mapping:
    return Mapping(expression=COMPILE.of_claims(source))


SUB = Mapping("sub")


def trusting(username: Mapping = SUB, **parts: Any) -> TrustedIssuer:
    return TrustedIssuer("https://issuer", "https://issuer/d", "", ("here",), username, **parts)


def user(issuer: TrustedIssuer, **claims: Any) -> User:
    said = {"sub": "jane", "aud": "here", "exp": NOW + 60, **claims}
    return token_user(json.dumps(said).encode(), issuer, NOW * 1_000_000)


def claims_must(*sources: str) -> tuple[Rule, ...]:
    return tuple(Rule(COMPILE.rule_of_claims(each), "they must") for each in sources)


def user_must(*sources: str) -> tuple[Rule, ...]:
    return tuple(Rule(COMPILE.rule_of_user(each), "they must") for each in sources)


def test_expressions_define_a_user() -> None:
    issuer = trusting(
        by("claims.user + '@' + claims.org"),
        groups=by("(claims.roles.split(',') + claims.teams).map(each, 'g:' + each)"),
        uid=by("claims.id"),
        extra=(("acme.io/team", COMPILE.of_claims("claims.teams")),),
    )
    made = user(issuer, user="ann", org="acme", roles="a,b", teams=["c"], id="7", jti="j")
    extra = {CREDENTIAL_ID: ("JTI=j",), "acme.io/team": ("c",)}
    assert made == User("ann@acme", "7", ("g:a", "g:b", "g:c"), extra)


def test_claims_and_expressions_can_be_combined() -> None:
    issuer = trusting(Mapping("sub", "oidc:"), groups=by("claims.role"), uid=Mapping("sub"))
    assert user(issuer, role="dev") == User("oidc:jane", "jane", ("dev",))


@pytest.mark.parametrize(
    ("claim", "texts"),
    [("a", ("a",)), (["a", "b"], ("a", "b")), (["", "a"], ("a",)), ("", ()), ([], ()), ([""], ()), (None, ())],
)
def test_empty_values_are_omitted(claim: Any, texts: tuple[str, ...]) -> None:
    issuer = trusting(groups=by("claims.x"), extra=(("acme.io/x", COMPILE.of_claims("claims.x")),))
    made = user(issuer, x=claim)
    assert made.groups == texts
    assert made.extra == ({"acme.io/x": texts} if texts else {})


@pytest.mark.parametrize("claim", [1, True, {"a": "b"}, ["a", 1], ["a", None], [["a"]]])
def test_groups_and_extras_are_strings(claim: Any) -> None:
    words = "expression must return a string or a list of strings"
    with pytest.raises(NoValue, match=f"oidc: error evaluating group claim expression: {words}"):
        user(trusting(groups=by("claims.x")), x=claim)
    with pytest.raises(NoValue, match=f"oidc: error evaluating extra claim expression: {words}"):
        user(trusting(extra=(("acme.io/x", COMPILE.of_claims("claims.x")),)), x=claim)


@pytest.mark.parametrize("claim", [1, None, ["a"], True, {}])
def test_names_and_uids_are_one_string(claim: Any) -> None:
    with pytest.raises(NoValue, match="username claim expression must return a string"):
        user(trusting(by("claims.x")), x=claim)
    with pytest.raises(NoValue, match="uid claim expression must return a string"):
        user(trusting(uid=by("claims.x")), x=claim)


def test_a_name_must_not_be_empty_and_a_uid_can_be() -> None:
    assert user(trusting(uid=by("claims.x")), x="").uid == ""
    with pytest.raises(CredentialsRefused) as refused:
        user(trusting(by("claims.x")), x="")
    assert refused.value.explanation == "oidc: empty username via CEL expression is not allowed"


@pytest.mark.parametrize(
    ("issuer", "problem"),
    [
        (trusting(by("claims.x.y")), "username claim expression: expression 'claims.x.y' resulted in error: no"),
        (trusting(groups=by("claims.a.b")), "group claim expression: expression 'claims.a.b' resulted in error: no"),
        (trusting(uid=by("claims.x")), "uid claim expression: expression 'claims.x' resulted in error: no such key: x"),
        (
            trusting(extra=(("acme.io/x", COMPILE.of_claims("claims.x")),)),
            "extra claim expression: expression 'claims.x' resulted in error: no such key: x",
        ),
        (
            trusting(claim_rules=claims_must("false", "claims.x == 1")),
            "claim validation expression: expression 'claims.x == 1' resulted in error: no such key: x",
        ),
        (
            trusting(user_rules=user_must("false", "user.extra['x'][0] == ''")),
            "user info validation rule: expression 'user.extra['x'][0] == ''' resulted in error: no such key: x",
        ),
        (
            trusting(
                claim_rules=claims_must("dyn(claims.l).all(a, dyn(claims.l).all(b, dyn(claims.l).all(c, c != '')))")
            ),
            "operation cancelled: actual cost limit exceeded",
        ),
    ],
)
def test_a_failing_expression_is_reported_with_its_reason(issuer: TrustedIssuer, problem: str) -> None:
    with pytest.raises(NoValue) as failed:
        user(issuer, l=["a"] * 200)
    assert problem in str(failed.value)


def test_a_false_rule_refuses_with_its_message() -> None:
    with pytest.raises(CredentialsRefused) as refused:
        user(trusting(claim_rules=claims_must("true", "claims.hd == 'acme'")), hd="other")
    words = "validation expression 'claims.hd == 'acme'' failed: they must"
    assert refused.value.explanation == f"oidc: error evaluating claim validation expression: {words}"
    with pytest.raises(CredentialsRefused) as refused:
        user(trusting(Mapping("sub", "system:"), user_rules=user_must("!user.username.startsWith('system:')")))
    words = "validation expression '!user.username.startsWith('system:')' failed: they must"
    assert refused.value.explanation == f"oidc: error evaluating user info validation rule: {words}"


@pytest.mark.parametrize(
    "rule",
    [
        "type(claims.n) == double && claims.n == 7",
        "claims.exp - claims.n > 3600.0",
        "type(claims.nested.list[0].n) == double",
        "type(claims.flag) == bool && claims.flag == true",
        "claims.nothing == null",
        "'n' in claims && !('m' in claims) && !has(claims.m)",
        "claims.?m.orValue('none') == 'none'",
        "sets.equivalent(claims.aud, ['here', 'there'])",
        "string(int(claims.n)) == '7'",
        "!format.dns1123Label().validate('jane').hasValue()",
        "claims['a.b'] == 'dotted' && claims.a__dot__b == 'dotted' && has(claims.a__dot__b)",
        "claims.nested.list[0].x__dash__y == 1",
    ],
)
def test_has_reports_existing_claims(rule: str) -> None:
    nested = {"list": [{"n": 1, "x-y": 1}]}
    claims = {"n": 7, "flag": True, "nothing": None, "a.b": "dotted", "aud": ["there", "here"], "nested": nested}
    assert user(trusting(claim_rules=claims_must(rule)), **claims).name == "jane"


@pytest.mark.parametrize(
    "rule",
    [
        "user.username == 'jane' && user.uid == ''",
        "user.groups == [] && size(user.groups) == 0 && !('a' in user.groups)",
        "user.extra == {} && !('a' in user.extra)",
        "has(user.uid) && has(user.groups) && has(user.extra)",
    ],
)
def test_missing_user_fields_exist_and_are_empty(rule: str) -> None:
    assert user(trusting(user_rules=user_must(rule))).name == "jane"


def test_user_rules_see_all_mapped_fields() -> None:
    rules = user_must(
        "user.username == 'oidc:jane' && user.uid == '7' && user.groups == ['dev']",
        "user.extra['acme.io/team'] == ['a', 'b'] && user.extra.acme__dot__io__slash__team[1] == 'b'",
        "!(user.extra[?'authentication.kubernetes.io/credential-id'][0].orValue('') in ['JTI=revoked'])",
    )
    extra = (("acme.io/team", COMPILE.of_claims("claims.teams")),)
    issuer = trusting(
        Mapping("sub", "oidc:"), groups=Mapping("groups"), uid=Mapping("id"), extra=extra, user_rules=rules
    )
    assert user(issuer, id="7", groups=["dev"], teams=["a", "b"], jti="j").name == "oidc:jane"
    with pytest.raises(CredentialsRefused, match="Unauthorized"):
        user(issuer, id="7", groups=["dev"], teams=["a", "b"], jti="revoked")


def test_a_service_account_of_another_cluster_is_named_by_its_claims() -> None:
    issuer = trusting(
        by(f"'system:serviceaccount:' + {K8S}.namespace + ':' + claims['kubernetes.io'].serviceaccount.name"),
        uid=by(f"{K8S}.serviceaccount.uid"),
        extra=(("acme.io/warn", COMPILE.of_claims(f"string(int({K8S}.warnafter))")),),
        claim_rules=claims_must(f"has({K8S}.pod.name)", "claims[?'kubernetes.io']['node']['ip'].orValue(true) == true"),
    )
    made = user(issuer, **{"kubernetes.io": ACCOUNT})
    assert made == User("system:serviceaccount:shop:till", "7", (), {"acme.io/warn": ("1700081020",)})


def test_rules_follow_the_required_claims_and_both_follow_the_validity() -> None:
    issuer = trusting(by("claims.x"), required=(("hd", "a"),), claim_rules=claims_must("false"))
    with pytest.raises(CredentialsRefused) as refused:
        user(issuer, x="jane")
    assert refused.value.explanation == "oidc: required claim hd not present in ID token"
    with pytest.raises(CredentialsRefused) as refused:
        user(issuer, exp=NOW)
    assert refused.value.explanation == "oidc: verify token: oidc: token is expired"


def test_a_number_outside_the_range_of_a_double_refuses_the_token() -> None:
    with pytest.raises(CredentialsRefused) as refused:
        user(trusting(by("claims.sub")), n=10**400)
    assert refused.value.explanation == "oidc: parse claims: int too large to convert to float"


def test_too_deeply_nested_claims_refuse_the_token() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    payload = f'{{"sub": "jane", "aud": "here", "exp": {NOW + 60}, "x": {deep}}}'.encode()
    with pytest.raises(CredentialsRefused):
        token_user(payload, trusting(by("claims.sub")), NOW * 1_000_000)
