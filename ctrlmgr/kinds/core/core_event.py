"""The strategies of Events, which are stored as core/v1 and validated by the rules of the request's API version.

Guarantees: an Event that is written through `v1` must meet only the old rules. An Event that is written through
`events.k8s.io/v1` must also meet strict rules, and an update may change only its series.

Source: Kubernetes `pkg/apis/core/validation/events.go`, `pkg/registry/core/event` and, for field selectors,
`pkg/apis/{core,events}/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import validate_metadata
from ctrlmgr.kinds.common_rules import each_problem, immutable

NAME_LENGTH = 128
NOTE_LENGTH = 1024

_MISMATCH = "does not match event.namespace"
_REFERENCE = {
    "Kind": "kind",
    "Namespace": "namespace",
    "Name": "name",
    "UID": "uid",
    "APIVersion": "apiVersion",
    "ResourceVersion": "resourceVersion",
    "FieldPath": "fieldPath",
}
_SOURCE = {"Component": "component", "Host": "host"}
_INVOLVED = tuple(f"involvedObject.{each}" for each in _REFERENCE.values())


class _Source(msgspec.Struct, frozen=True, gc=False):
    component: str = ""


class _Event(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    source: _Source = _Source()
    type: str = ""
    reporting_component: str = ""


class EventStrategy(Strategy):
    """The strategy of the kind v1 Event."""

    allow_create_on_update = True
    revalidates = 0
    any_finalizer = True
    checks_metadata = False
    compares_metadata = False
    default_propagation = ""
    name_check = staticmethod(name_formats.path_segment_name)
    fields = (*_INVOLVED, "reason", "reportingComponent", "source", "type")
    controller_field = "reportingComponent"
    """The name of the field for the reporting controller in the API version of the request."""

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate an Event by the rules of core/v1."""
        errors = self._validate_new_style(obj) if obj.get("eventTime") else _validate_namespaces(obj)
        namespace = obj["metadata"].get("namespace", "")
        return errors + each_problem(name_formats.dns1123_subdomain, namespace, Path("namespace"))

    def _validate_new_style(self, obj: Unstructured) -> list[FieldError]:
        errors: list[FieldError] = []
        if not _involved_namespace(obj) and obj["metadata"].get("namespace") not in ("default", "kube-system"):
            errors.append(invalid(Path("involvedObject.namespace"), "", _MISMATCH))
        controller, path = obj.get("reportingComponent") or "", Path(self.controller_field)
        errors += [] if controller else [required(path)]
        errors += each_problem(name_formats.qualified_name, controller, path)
        for field in ("reportingInstance", "action", "reason"):
            value = obj.get(field) or ""
            errors += [] if value else [required(field)]
            errors += _limit(value, NAME_LENGTH, field)
        return errors + _limit(obj.get("message") or "", NOTE_LENGTH, "message")

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the involved object, the reason, and the reporting controller, for field selectors."""
        event = obj.view(_Event)
        involved = zip(_INVOLVED, msgspec.structs.astuple(event.involved_object), strict=True)
        return {
            **dict(involved),
            "reason": event.reason,
            "reportingComponent": event.reporting_component,
            "source": event.source.component or event.reporting_component,
            "type": event.type,
        }


class StrictEventStrategy(EventStrategy):
    """The strategy of the kind events.k8s.io/v1 Event."""

    any_finalizer = False
    compares_metadata = True
    controller_field = "reportingController"
    name_check = staticmethod(name_formats.subdomain_name)
    fields = (*(f"regarding.{each}" for each in _REFERENCE.values()), "reason", "reportingController", "type")

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate a new Event by the strict rules; `validate_update` validates an updated Event."""
        errors = super().validate(ctx, obj)
        if ctx.old is not None:
            return errors
        errors += validate_metadata(obj["metadata"], namespaced=True, name_check=self.name_check)
        return errors + _validate_series(obj) + _validate_strictly(obj)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that only the series of an Event has changed, and that the new series is valid."""
        errors = [] if new.get("series") == old.get("series") else _validate_series(new)
        for field, shown in _IMMUTABLE:
            path = Path(self.controller_field if field == "reportingComponent" else field)
            errors += immutable(shown(new.get(field)), shown(old.get(field)), path)
        return errors

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the fields of an Event for field selectors, with the field names of the API version of the request."""
        fields = {key.replace("involvedObject.", "regarding."): value for key, value in super().selectable(obj).items()}
        fields["reportingController"] = fields.pop("reportingComponent")
        return fields


def _shown_reference(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if value is None else {name: value.get(field, "") for name, field in _REFERENCE.items()}


def _shown_source(value: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: (value or {}).get(field, "") for name, field in _SOURCE.items()}


def _shown_text(value: str | None) -> str:
    return value or ""


def _shown_number(value: int | None) -> int:
    return value or 0


def _shown_time(value: str | None) -> str | None:
    return value


_IMMUTABLE: Sequence[tuple[str, Callable[[Any], Any]]] = (
    ("involvedObject", _shown_reference),
    ("reason", _shown_text),
    ("message", _shown_text),
    ("source", _shown_source),
    ("firstTimestamp", _shown_time),
    ("lastTimestamp", _shown_time),
    ("count", _shown_number),
    ("reason", _shown_text),
    ("type", _shown_text),
    ("eventTime", _shown_time),
    ("action", _shown_text),
    ("related", _shown_reference),
    ("reportingComponent", _shown_text),
    ("reportingInstance", _shown_text),
)
"""The fields of an Event that an update must not change under the strict rules. Each field has a function that formats
its value.

Field values in error messages are formatted as in Go. The order and the number of these fields equal those in
Kubernetes' errors.
"""


def _involved_namespace(obj: Unstructured) -> str:
    return (obj.get("involvedObject") or {}).get("namespace") or ""


def _validate_namespaces(obj: Unstructured) -> list[FieldError]:
    """Validate that an Event without eventTime is in the namespace of the involved object, or in `default`."""
    namespace, involved = obj["metadata"].get("namespace", ""), _involved_namespace(obj)
    if namespace == involved or (not involved and namespace == "default"):
        return []
    return [invalid(Path("involvedObject.namespace"), involved, _MISMATCH)]


def _limit(value: str, limit: int, field: str) -> list[FieldError]:
    return [invalid(field, "", f"can have at most {limit} characters")] if name_formats.length(value) > limit else []


def _validate_series(obj: Unstructured) -> list[FieldError]:
    series = obj.get("series")
    if series is None:
        return []
    errors = [] if series.get("count", 0) >= 2 else [invalid("series.count", "", "should be at least 2")]
    return errors if series.get("lastObservedTime") else [*errors, required("series.lastObservedTime")]


def _validate_strictly(obj: Unstructured) -> list[FieldError]:
    errors = [] if obj.get("eventTime") else [required("eventTime")]
    type_ = obj.get("type") or ""
    if type_ not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {type_}"))
    source = obj.get("source") or {}
    unset = {each: obj.get(each) for each in ("firstTimestamp", "lastTimestamp", "count")}
    unset["source"] = source.get("component") or source.get("host")
    return errors + [invalid(field, "", "needs to be unset") for field, value in unset.items() if value]
