from typing import Any

import pytest

from ctrlmgr.api.field import (
    ROOT,
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    refuse,
    required,
    too_long,
    too_many,
)
from ctrlmgr.errors import StatusCause

NAME = Path("metadata").child("name")


def test_a_path_reads_as_kubernetes_writes_it() -> None:
    assert ROOT.child("spec", "ports").at(0).child("name") == "spec.ports[0].name"
    assert Path("metadata").child("labels").key("example.com/a") == "metadata.labels[example.com/a]"


@pytest.mark.parametrize(
    ("error", "reason", "body"),
    [
        (invalid(NAME, "A", "no"), "FieldValueInvalid", 'Invalid value: "A": no'),
        (invalid(NAME, None, "no"), "FieldValueInvalid", "Invalid value: null: no"),
        (required(NAME), "FieldValueRequired", "Required value"),
        (required(NAME, "please"), "FieldValueRequired", "Required value: please"),
        (duplicate(NAME, "a"), "FieldValueDuplicate", 'Duplicate value: "a"'),
        (duplicate(NAME, 1, "once"), "FieldValueDuplicate", "Duplicate value: 1: once"),
        (forbidden(NAME, "not now"), "FieldValueForbidden", "Forbidden: not now"),
        (not_found(NAME, "a"), "FieldValueNotFound", 'Not found: "a"'),
        (not_found(NAME, "a", "nowhere"), "FieldValueNotFound", 'Not found: "a": nowhere'),
        (too_long(NAME, 10), "FieldValueTooLong", "Too long: may not be more than 10 bytes"),
        (too_long(NAME, 1), "FieldValueTooLong", "Too long: may not be more than 1 byte"),
        (too_many(NAME, 9, 8), "FieldValueTooMany", "Too many: 9: must have at most 8 items"),
        (too_many(NAME, 2, 1), "FieldValueTooMany", "Too many: 2: must have at most 1 item"),
    ],
)
def test_an_error_reads_as_kubernetes_writes_it(error: FieldError, reason: str, body: str) -> None:
    assert error == FieldError(reason, "metadata.name", body)
    assert error.message == f"metadata.name: {body}"


@pytest.mark.parametrize(
    ("supported", "shown"),
    [
        (frozenset(("UDP", "TCP", "SCTP")), '"SCTP", "TCP", "UDP"'),  # a set has no defined order
        (("Always", "OnFailure", "Never"), '"Always", "OnFailure", "Never"'),
    ],
)
def test_an_enumeration_is_shown_in_its_order(supported: Any, shown: str) -> None:
    assert not_supported(NAME, "x", supported).body == f'Unsupported value: "x": supported values: {shown}'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('a"\\', r'"a\"\\"'),
        ("\r\n\t\v\a\x00\x7f", r'"\r\n\t\v\a\x00\x7f"'),
        ("é\u200b\U000e0001", r'"é\u200b\U000e0001"'),
        ("<a&b>", '"<a&b>"'),
        (70000, "70000"),
        (True, "true"),
        (["a", "<b>"], r'["a","\u003cb\u003e"]'),
        ({"Name": "", "AppProtocol": None, "Port": 1}, '{"Name":"","AppProtocol":null,"Port":1}'),
    ],
)
def test_a_value_is_shown_as_go_shows_it(value: Any, shown: str) -> None:
    assert invalid(NAME, value, "").body == f"Invalid value: {shown}"


def test_one_error_is_the_message() -> None:
    refused = refuse("Lease", "coordination.k8s.io", "a", [required(NAME)])
    assert str(refused) == 'Lease.coordination.k8s.io "a" is invalid: metadata.name: Required value'
    assert refused.details is not None
    assert refused.details[:3] == ("a", "coordination.k8s.io", "Lease")
    assert refused.details.causes == (StatusCause("FieldValueRequired", "Required value", "metadata.name"),)


def test_repeated_errors_are_listed_and_described_once() -> None:
    refused = refuse("Pod", "", "a", [required(NAME), forbidden("spec", "no"), required(NAME)])
    assert str(refused) == 'Pod "a" is invalid: [metadata.name: Required value, spec: Forbidden: no]'
    assert refused.details is not None
    assert [cause.field for cause in refused.details.causes] == ["metadata.name", "spec", "metadata.name"]


def test_a_float_is_shown_as_go_prints_it() -> None:
    assert invalid("f", 1e6, "too much").body == "Invalid value: 1e+06: too much"
