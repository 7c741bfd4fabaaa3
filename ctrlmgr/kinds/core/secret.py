"""The strategy of Secrets: the required keys of each type, and `stringData`, which clients can write but not read.

Source: Kubernetes `pkg/apis/core/validation`, `ValidateSecret` and `ValidateSecretUpdate`, `pkg/registry/core/secret`,
and for `stringData` `pkg/apis/core/v1/conversion.go`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from json import JSONDecodeError, loads
from typing import Any

import msgspec

from ctrlmgr.api.field import FieldError, Path, invalid, required, too_long
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.golang.go_text import quote_byte
from ctrlmgr.kinds.common_rules import immutable
from ctrlmgr.kinds.core.config_map import (
    MAX_DATA_SIZE,
    decoded_length,
    validate_immutability,
    validate_keys,
)
from ctrlmgr.schema.strict_json import GO_WORDS

SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_TOKEN_TYPE = "kubernetes.io/service-account-token"
_TLS_TYPE = "kubernetes.io/tls"
_BASIC_AUTH_TYPE = "kubernetes.io/basic-auth"
_SSH_TYPE = "kubernetes.io/ssh-auth"
_JSON_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_KEYS = {
    _TLS_TYPE: ("tls.crt", "tls.key"),
    _BASIC_AUTH_TYPE: ("username", "password"),
    _SSH_TYPE: ("ssh-privatekey",),
    **{type_: (key,) for type_, key in _JSON_KEYS.items()},
}
_DATA = Path("data")


class _Secret(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


class SecretStrategy(Strategy):
    """The strategy of the kind v1 Secret."""

    fields = ("type",)

    def default(self, obj: Unstructured) -> None:
        """Default the type of a Secret to Opaque, and merge `stringData` into `data`."""
        if not obj.get("type"):
            obj["type"] = "Opaque"
        texts = obj.pop("stringData", None)
        if texts:
            encoded = {key: b64encode((text or "").encode()).decode() for key, text in texts.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the keys, the size, and the requirements of the Secret's type."""
        data = obj.get("data") or {}
        errors = _validate_change(obj, ctx.old) if ctx.old is not None else []
        errors += validate_keys(data, _DATA)
        if sum(decoded_length(each or "") for each in data.values()) > MAX_DATA_SIZE:
            errors.append(too_long(_DATA, MAX_DATA_SIZE))
        return errors + _validate_type(obj["type"], data, obj["metadata"].get("annotations") or {})

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about an invalid certificate or key; the warning is the error message of Go's `tls.X509KeyPair`."""
        if obj["type"] != _TLS_TYPE:
            return []
        data = obj.get("data") or {}
        for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
            if b"-----BEGIN " not in b64decode(data.get(key) or ""):
                return [f"tls: failed to find any PEM data in {what} input"]
        return []

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the type of a Secret, for field selectors."""
        return {"type": obj.view(_Secret).type}


def _validate_change(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate that the type of a Secret is unchanged, and that a Secret which is marked as immutable is unchanged."""
    return immutable(new["type"], old["type"], Path("type")) + validate_immutability(new, old, ("data",))


def _validate_type(type_: str, data: Mapping[str, str], annotations: Mapping[str, str]) -> list[FieldError]:
    if type_ == _TOKEN_TYPE and not annotations.get(SERVICE_ACCOUNT_NAME):
        return [required(Path("metadata.annotations").key(SERVICE_ACCOUNT_NAME))]
    if missing := _missing_keys(type_, data):
        return [required(_DATA.key(each)) for each in missing]
    key = _JSON_KEYS.get(type_)
    return _validate_json(data[key], _DATA.key(key)) if key else []


def _missing_keys(type_: str, data: Mapping[str, str]) -> Sequence[str]:
    keys = _KEYS.get(type_, ())
    if type_ == _BASIC_AUTH_TYPE:  # one of these keys is enough
        return () if any(each in data for each in keys) else keys
    if type_ == _SSH_TYPE:  # the value must not be empty
        return [each for each in keys if not data.get(each)]
    return [each for each in keys if each not in data]


def _validate_json(encoded: str, path: Path) -> list[FieldError]:
    problem = _json_problem(b64decode(encoded or ""))
    return [invalid(path, "<secret contents redacted>", problem)] if problem else []


_GO_TYPES = {list: "array", str: "string", int: "number", float: "number", bool: "bool"}


def _json_problem(data: bytes) -> str:
    """Return the error of Go's `json.Unmarshal` if `data` is not a JSON object.

    The result is empty if `data` is an object or null.
    """
    # Each byte becomes one character, because strings in Go's messages may contain any bytes.
    text = data.decode("latin-1")
    try:
        value: Any = loads(text)
    except RecursionError:
        return "exceeded max depth"
    except JSONDecodeError as error:
        if error.pos >= len(text.rstrip()):
            return "unexpected end of JSON input"
        return f"invalid character {quote_byte(data[error.pos])} {GO_WORDS.get(error.msg, 'in string literal')}"
    if value is None or isinstance(value, dict):
        return ""
    return f"json: cannot unmarshal {_GO_TYPES[type(value)]} into Go value of type map[string]interface {{}}"
