"""Tests of the rules about a token's claims in the configuration file, and of invalid rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.authentication.jwt_configuration import read_configuration
from ctrlmgr.authentication.trusted_issuer import TrustedIssuer
from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.errors import SettingsError

SUB = {"expression": "claims.sub"}
BOTH = "claim and expression can't both be set"
NEITHER = "claim or expression is required"
UNVERIFIED = "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*]"


def read(folder: Path, mappings: dict[str, Any], **rules: Any) -> TrustedIssuer:
    """Write a configuration file with one issuer, one value per line, and read the file."""
    issuer = {"url": "https://issuer.example.com", "audiences": ["here"]}
    said = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{"issuer": issuer, "claimMappings": {"username": SUB, **mappings}, **rules}],
    }
    file = folder / "authentication.yaml"
    file.write_text(json.dumps(said, indent=1))
    [read] = read_configuration(file, (), FUNCTIONS).issuers
    return read


def refused(folder: Path, mappings: dict[str, Any], **rules: Any) -> tuple[str, str]:
    """Return the line of the file that the error reports, and the error message."""
    with pytest.raises(SettingsError) as refusal:
        read(folder, mappings, **rules)
    place, _, problem = str(refusal.value).partition(": ")
    lines = (folder / "authentication.yaml").read_text().splitlines()
    return lines[int(place.rpartition(":")[2]) - 1].strip(), problem


def test_all_expressions_are_read(tmp_path: Path) -> None:
    issuer = read(
        tmp_path,
        {
            "groups": {"expression": "claims.roles.split(',')"},
            "uid": {"expression": "claims.?uid.orValue('')"},
            "extra": [{"key": "example.com/team", "valueExpression": "claims.team"}],
        },
        claimValidationRules=[{"claim": "hd", "requiredValue": "x"}, {"expression": "claims.a == 1", "message": "no"}],
        userValidationRules=[{"expression": "!user.username.startsWith('system:')", "message": "no"}],
    )
    mapped = [each.expression for each in (issuer.username, issuer.groups, issuer.uid)]
    sources = [each.source for each in mapped if each is not None]
    assert sources == ["claims.sub", "claims.roles.split(',')", "claims.?uid.orValue('')"]
    assert [(key, each.source) for key, each in issuer.extra] == [("example.com/team", "claims.team")]
    assert issuer.required == (("hd", "x"),)
    [of_claims], [of_user] = issuer.claim_rules, issuer.user_rules
    assert (of_claims.expression.source, of_claims.message) == ("claims.a == 1", "no")
    assert (of_user.expression.source, of_user.message) == ("!user.username.startsWith('system:')", "no")


def test_an_equivalent_file_is_equal(tmp_path: Path) -> None:
    once, again = (read(tmp_path, {"uid": SUB}, userValidationRules=[{"expression": "true"}]) for _ in range(2))
    assert once == again
    assert once != read(tmp_path, {"uid": SUB}, userValidationRules=[{"expression": "false"}])


@pytest.mark.parametrize(
    ("mappings", "line", "problem"),
    [
        ({"username": {}}, '"username": {}', NEITHER),
        ({"username": {"claim": "sub", "prefix": "", **SUB}}, '"username": {', BOTH),
        ({"username": {"prefix": "", **SUB}}, '"prefix": "",', "prefix may not be specified when expression is set"),
        ({"groups": {"claim": "groups", "prefix": "", **SUB}}, '"groups": {', BOTH),
        ({"groups": {"prefix": "a", **SUB}}, '"prefix": "a",', "prefix may not be specified when expression is set"),
        ({"groups": {"claim": "a"}}, '"groups": {', "prefix is required when claim is set. It can be set to an empty"),
        ({"uid": {"claim": "uid", **SUB}}, '"uid": {', BOTH),
    ],
)
def test_a_part_is_read_from_a_claim_or_an_expression(
    tmp_path: Path, mappings: dict[str, Any], line: str, problem: str
) -> None:
    found_line, found = refused(tmp_path, mappings)
    assert found_line == line
    assert found.startswith(problem)


@pytest.mark.parametrize("field", ["username", "groups", "uid"])
def test_an_invalid_expression_is_reported_in_one_line(tmp_path: Path, field: str) -> None:
    line, problem = refused(tmp_path, {field: {"expression": "foo.bar +\nuser.name"}})
    assert line == r'"expression": "foo.bar +\nuser.name"'
    first = "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')"
    assert (
        problem == f"compilation failed: {first}; ERROR: <input>:2:1: undeclared reference to 'user' (in container '')"
    )


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ([{"valueExpression": "claims.a"}], "key is required"),
        (
            [{"key": "team", "valueExpression": "claims.a"}],
            'key must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        ([{"key": "/team", "valueExpression": "claims.a"}], "key must be a domain-prefixed path"),
        ([{"key": "acme.io/", "valueExpression": "claims.a"}], "key must be a domain-prefixed path"),
        ([{"key": "Acme_io/a", "valueExpression": "claims.a"}], "the domain of a key must be a lower-case RFC 1123"),
        ([{"key": "acme.io/a b", "valueExpression": "claims.a"}], "Invalid path (regex used for validation is"),
        ([{"key": "acme.io/Team", "valueExpression": "claims.a"}], "key must be lowercase"),
        ([{"key": "k8s.io/team", "valueExpression": "claims.a"}], "k8s.io, kubernetes.io and their subdomains are"),
        ([{"key": "a.kubernetes.io/team", "valueExpression": "claims.a"}], "k8s.io, kubernetes.io and their"),
        ([{"key": "acme.io/a"}], "valueExpression is required"),
        ([{"key": "acme.io/a", "valueExpression": "claims.a"}] * 2, 'Duplicate value: "acme.io/a"'),
        ([{"key": "acme.io/a", "valueExpression": "a"}], "compilation failed: ERROR: <input>:1:1: undeclared"),
    ],
)
def test_invalid_extras_are_refused(tmp_path: Path, extra: list[Any], problem: str) -> None:
    assert refused(tmp_path, {"extra": extra})[1].startswith(problem)


def test_a_domain_that_merely_ends_like_kubernetes_own_is_allowed(tmp_path: Path) -> None:
    extra = [{"key": "x-k8s.io/a", "valueExpression": "claims.a"}]
    assert [key for key, _ in read(tmp_path, {"extra": extra}).extra] == ["x-k8s.io/a"]


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([{"message": "x"}], NEITHER),
        ([{"claim": "a", "expression": "true"}], BOTH),
        ([{"claim": "a", "message": "x"}], "message may not be specified when claim is set"),
        ([{"claim": "a"}, {"claim": "a"}], 'Duplicate value: "a"'),
        ([{"expression": "true", "requiredValue": "x"}], "requiredValue may not be specified when expression is set"),
        ([{"expression": "claims.a == 'b'"}] * 2, "Duplicate value: \"claims.a == 'b'\""),
        ([{"expression": "claims.a"}], "must evaluate to bool but got any"),
        ([{"expression": "claims.?a.orValue(true)"}], "must evaluate to bool but got any"),
        ([{"expression": "user.username == 'a'"}], "compilation failed: ERROR: <input>:1:1: undeclared reference"),
        ([{"expression": "claims.a =="}], "compilation failed: ERROR: <input>:1:12: Syntax error:"),
    ],
)
def test_invalid_claim_rules_are_refused(tmp_path: Path, rules: list[Any], problem: str) -> None:
    assert refused(tmp_path, {}, claimValidationRules=rules)[1].startswith(problem)


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([{"message": "x"}], "expression is required"),
        ([{"expression": "true"}] * 2, 'Duplicate value: "true"'),
        ([{"expression": "user.username"}], "must evaluate to bool but got string"),
        ([{"expression": "user.name == 'a'"}], "compilation failed: ERROR: <input>:1:5: undefined field 'name'"),
        ([{"expression": "claims.a == 'a'"}], "compilation failed: ERROR: <input>:1:1: undeclared reference"),
    ],
)
def test_invalid_user_rules_are_refused(tmp_path: Path, rules: list[Any], problem: str) -> None:
    assert refused(tmp_path, {}, userValidationRules=rules)[1].startswith(problem)


@pytest.mark.parametrize(
    "username",
    [
        "claims.email",
        "claims.?email.orValue('')",
        "has(claims.email) ? claims.email : claims.sub",
        "string(claims.email).lowerAscii()",
        "[string(claims.email), 'a'].join('-')",
        "{'a': claims.email}.a",
        "['a'].map(each, each + claims.email)[0]",
    ],
)
def test_email_username_needs_a_verified_email(tmp_path: Path, username: str) -> None:
    mappings = {"username": {"expression": username}}
    line, problem = refused(tmp_path, mappings)
    assert line.startswith('"expression": ')
    assert problem.startswith(UNVERIFIED)
    elsewhere = [{"expression": "claims.email_verified == true"}]
    assert read(tmp_path, mappings, claimValidationRules=elsewhere).username.expression is not None
    extra = [{"key": "acme.io/verified", "valueExpression": "string(claims.email_verified)"}]
    assert read(tmp_path, {**mappings, "extra": extra}).username.expression is not None


@pytest.mark.parametrize(
    "username",
    [
        "claims.email_verified ? claims.email : claims.sub",
        "claims.?email_verified.orValue(true) == true ? claims.email : claims.sub",
        "claims['email']",
        "claims.other.email",
        "claims.mail",
    ],
)
def test_other_usernames_need_no_verified_email(tmp_path: Path, username: str) -> None:
    assert read(tmp_path, {"username": {"expression": username}}).username.expression is not None


def test_a_verified_address_elsewhere_in_the_file_does_not_count(tmp_path: Path) -> None:
    verified = {"expression": "string(claims.email_verified)"}
    mappings = {"username": {"expression": "claims.email"}, "groups": verified, "uid": verified}
    assert refused(tmp_path, mappings)[1].startswith(UNVERIFIED)
