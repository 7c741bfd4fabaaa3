from base64 import b64encode
from typing import Any

import pytest

from ctrlmgr.kinds.core.config_map import MAX_DATA_SIZE
from ctrlmgr.kinds.core.secret import SecretStrategy
from tests.kinds.write import WriteResult, create, stored, update

STRATEGY = SecretStrategy()
METADATA = {"name": "s", "namespace": "ns"}
PEM = "-----BEGIN CERTIFICATE-----"
REDACTED = '"<secret contents redacted>"'


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def created(type_: str | None = None, data: dict[str, str] | None = None, **fields: Any) -> WriteResult:
    secret = {"metadata": METADATA, "data": {key: encoded(each) for key, each in (data or {}).items()}, **fields}
    return create(STRATEGY, {**secret, "type": type_} if type_ else secret)


def test_a_secret_is_opaque_by_default() -> None:
    assert created().object["type"] == "Opaque"
    assert created("example.com/mine").object["type"] == "example.com/mine"


def test_string_data_is_encoded_and_not_stored() -> None:
    written = created(data={"a": "old", "b": "kept"}, stringData={"a": "new", "c": "é"})
    assert written.object["data"] == {"a": encoded("new"), "b": encoded("kept"), "c": encoded("é")}
    assert "stringData" not in written.object


def test_empty_string_data_is_ignored() -> None:
    written = create(STRATEGY, {"metadata": METADATA, "stringData": {}})
    assert written.object == {"metadata": METADATA, "type": "Opaque"}


@pytest.mark.parametrize(
    ("type_", "data", "messages"),
    [
        ("Opaque", {}, []),
        ("Opaque", {"a b": ""}, ["data[a b]"]),
        ("kubernetes.io/tls", {"tls.crt": PEM, "tls.key": ""}, []),
        ("kubernetes.io/tls", {"tls.crt": PEM}, ["data[tls.key]: Required value"]),
        ("kubernetes.io/tls", {}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ("kubernetes.io/basic-auth", {"password": ""}, []),
        ("kubernetes.io/basic-auth", {}, ["data[username]: Required value", "data[password]: Required value"]),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": "k"}, []),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]: Required value"]),
        ("kubernetes.io/dockercfg", {}, ["data[.dockercfg]: Required value"]),
        ("kubernetes.io/dockercfg", {".dockercfg": "{}"}, []),
        ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]: Required value"]),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
    ],
)
def test_a_type_requires_keys(type_: str, data: dict[str, str], messages: list[str]) -> None:
    found = created(type_, data).messages
    assert len(found) == len(messages)
    assert all(one.startswith(other) for one, other in zip(found, messages, strict=True))


def test_a_token_names_its_service_account() -> None:
    metadata = {**METADATA, "annotations": {"kubernetes.io/service-account.name": "default"}}
    assert created("kubernetes.io/service-account-token", metadata=metadata).errors == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("null", ""),
        ("", "unexpected end of JSON input"),
        ('{"a": ', "unexpected end of JSON input"),
        ("nothing", "invalid character 'n' looking for beginning of value"),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 2}', "invalid character '2' after object key:value pair"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("\x13", r"invalid character '\x13' looking for beginning of value"),
        ("'a", r"invalid character '\'' looking for beginning of value"),
        ("{é}", "invalid character 'Ã' looking for beginning of object key string"),
        ("[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("1.5", "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ("[" * 200_000, "exceeded max depth"),
    ],
)
def test_registry_credentials_are_json_objects(text: str, problem: str) -> None:
    messages = created("kubernetes.io/dockerconfigjson", {".dockerconfigjson": text}).messages
    assert messages == ([f"data[.dockerconfigjson]: Invalid value: {REDACTED}: {problem}"] if problem else [])


def test_all_values_together_have_at_most_a_mebibyte() -> None:
    assert created(data={"a": "x" * MAX_DATA_SIZE}).errors == []
    assert created(data={"a": "x" * MAX_DATA_SIZE, "b": "x"}).messages == [
        "data: Too long: may not be more than 1048576 bytes"
    ]


def test_the_type_is_immutable() -> None:
    old = {"metadata": METADATA, "type": "Opaque"}
    assert update(STRATEGY, old, {"type": "example.com/mine"}).messages == [
        'type: Invalid value: "example.com/mine": field is immutable'
    ]
    assert update(STRATEGY, old, {"type": None}).errors == []


def test_an_immutable_secret_cannot_change() -> None:
    old = {"metadata": METADATA, "type": "Opaque", "data": {"a": encoded("1")}, "immutable": True}
    words = "field is immutable when `immutable` is set"
    assert update(STRATEGY, old, {"stringData": {"a": "1"}}).errors == []
    assert update(STRATEGY, old, {"stringData": {"a": "2"}}).messages == [f"data: Forbidden: {words}"]
    assert update(STRATEGY, old, {"immutable": None}).messages == [f"immutable: Forbidden: {words}"]


@pytest.mark.parametrize(
    ("type_", "data", "warnings"),
    [
        ("Opaque", {}, []),
        ("kubernetes.io/tls", {"tls.crt": PEM, "tls.key": PEM}, []),
        (
            "kubernetes.io/tls",
            {"tls.crt": "x", "tls.key": "x"},
            ["tls: failed to find any PEM data in certificate input"],
        ),
        ("kubernetes.io/tls", {"tls.crt": PEM, "tls.key": "x"}, ["tls: failed to find any PEM data in key input"]),
    ],
)
def test_invalid_keys_cause_warnings(type_: str, data: dict[str, str], warnings: list[str]) -> None:
    assert created(type_, data).warnings == warnings


def test_a_secret_is_selected_by_its_type() -> None:
    assert STRATEGY.selectable(stored("v1", "Secret", {"metadata": METADATA, "type": "a"})) == {"type": "a"}
