"""Converts values that have different forms in protobuf and JSON: times, quantities, int-or-string, JSON in bytes.

Each function converts the decoded fields of one message into its JSON value. Source: apimachinery's `time_proto.go`,
`micro_time_proto.go`, `quantity_proto.go`, `intstr.go`, and apiextensions' `marshal.go`. For example, a time message
without fields becomes null, and not a time in the year 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ctrlmgr.errors import BadRequest

Fields = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _time(fields: Fields) -> str | None:
    """Return a time in whole seconds, because Kubernetes' encoder and decoder ignore the nanoseconds of a Time."""
    return _rfc3339(fields, 0, "seconds") if fields else None


def _micro_time(fields: Fields) -> str | None:
    return _rfc3339(fields, fields.get("nanos", 0) // 1000, "microseconds") if fields else None


def _rfc3339(fields: Fields, microseconds: int, precision: str) -> str:
    try:
        time = _EPOCH + timedelta(seconds=fields.get("seconds", 0), microseconds=microseconds)
    except OverflowError as error:
        raise BadRequest("Time.MarshalJSON: year outside of range [0,9999]") from error
    return time.isoformat(timespec=precision)[:-6] + "Z"


def _quantity(fields: Fields) -> str:
    return str(fields.get("string", "0"))


def _int_or_string(fields: Fields) -> int | str:
    match fields.get("type", 0):
        case 0:
            return int(fields.get("intVal", 0))
        case 1:
            return str(fields.get("strVal", ""))
    raise BadRequest("impossible IntOrString.Type")


def _raw(fields: Fields) -> Any:
    return fields.get("raw")


def _schema_or_list(many: str) -> Callable[[Fields], Any]:
    return lambda fields: fields.get(many) or fields.get("schema")


def _schema_or_bool(fields: Fields) -> Any:
    return fields["schema"] if "schema" in fields else fields.get("allows", False)


_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."

VALUES: Mapping[str, Callable[[Fields], Any]] = {
    f"{_META}Time": _time,
    f"{_META}MicroTime": _micro_time,
    f"{_META}FieldsV1": _raw,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    f"{_EXTENSIONS}JSON": _raw,
    f"{_EXTENSIONS}JSONSchemaPropsOrArray": _schema_or_list("jSONSchemas"),
    f"{_EXTENSIONS}JSONSchemaPropsOrStringArray": _schema_or_list("property"),
    f"{_EXTENSIONS}JSONSchemaPropsOrBool": _schema_or_bool,
}
"""The functions that convert messages, by the message's name; all other messages become JSON objects, or lists
(`ExtraValue`).
"""
