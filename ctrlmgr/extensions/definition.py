"""A CustomResourceDefinition as the kind that it defines, with its names, its versions and their schemas.

Guarantees: parsing is cheap, and succeeds for every valid CustomResourceDefinition. Schemas, columns and paths are
created on first use and cached.

Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go` (`getOrCreateServingInfoFor`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ctrlmgr.api.field import FieldError, Path
from ctrlmgr.api.version_order import is_older, newest_first
from ctrlmgr.extensions import scale_paths
from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.extensions.paths.json_path import JSONPath, JSONPathError, text_of
from ctrlmgr.extensions.printer_columns import Age, Column, cells, parse_columns
from ctrlmgr.extensions.rules.rule_evaluation import evaluate_rules
from ctrlmgr.extensions.scale_paths import Scale
from ctrlmgr.extensions.structural import MISSING, Raw

_STATUS = Path("status")
_BLOCKING = frozenset(
    ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
)
"""The reasons of validation errors after which the rules of the schema are not evaluated."""
_NOT_CHECKED = FieldError(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid;"
    " correct the existing errors to complete validation",
)


@dataclass(frozen=True)
class Names:
    """The names of a kind, as requested or as accepted."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, raw: Raw) -> Names:
        """Create the names from `spec.names` or `status.acceptedNames`."""
        return cls(
            raw.get("plural") or "",
            raw.get("singular") or "",
            raw.get("kind") or "",
            raw.get("listKind") or "",
            tuple(raw.get("shortNames") or ()),
            tuple(raw.get("categories") or ()),
        )


class SelectableField(NamedTuple):
    """A field of objects by which field selectors can select."""

    name: str
    """The name of the field in field selectors, such as `spec.color`."""
    path: JSONPath

    def read(self, value: Any) -> str:
        """Return the field's value in an object as selectors compare it; the empty string if the value is absent."""
        try:
            found = self.path.find(value)
        except JSONPathError:
            return ""
        return "" if not found or found[0] is None else text_of(found[0])


@dataclass(frozen=True)
class Conversion:
    """The way in which objects are converted between versions."""

    strategy: str = "None"
    """The conversion strategy: "None" changes only the apiVersion, "Webhook" calls a webhook."""
    client: Raw | None = None
    """The `clientConfig` of the conversion webhook."""
    review_versions: tuple[str, ...] = ()


class Version:
    """One version of a custom kind."""

    def __init__(self, raw: Raw, *, keeps_unknown: bool = False) -> None:
        """Create a version from one entry of `spec.versions`; `keeps_unknown` is `spec.preserveUnknownFields`."""
        self._raw = raw
        self._keeps_unknown = keeps_unknown
        self.name: str = raw["name"]
        self.served: bool = bool(raw.get("served"))
        self.storage: bool = bool(raw.get("storage"))
        self.deprecated: bool = bool(raw.get("deprecated"))
        self.deprecation_warning: str | None = raw.get("deprecationWarning")
        """The deprecation warning in the CustomResourceDefinition; None means Kubernetes' default warning."""
        subresources = raw.get("subresources") or {}
        self.has_status: bool = subresources.get("status") is not None
        self.scale: Scale | None = None if subresources.get("scale") is None else Scale.of(subresources["scale"])

    @property
    def raw_schema(self) -> Raw | None:
        """The schema as the CustomResourceDefinition contains it."""
        return (self._raw.get("schema") or {}).get("openAPIV3Schema")

    @cached_property
    def schema(self) -> Schema:
        """The compiled schema of objects of this version."""
        return Schema(self.raw_schema, keeps_unknown=self._keeps_unknown)

    @cached_property
    def status_schema(self) -> Schema | None:
        """The compiled schema of an object's status; None if the schema describes no status."""
        properties = (self.raw_schema or {}).get("properties") or {}
        return Schema(properties["status"]) if "status" in properties else None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a table, except the column with the object's name."""
        return parse_columns(self._raw.get("additionalPrinterColumns") or ())

    def cells(self, value: Any, age: Age) -> list[Any]:
        """Return the cells of an object in the columns of the table; `age` formats the age of a timestamp."""
        return cells(self.columns, value, age)

    @cached_property
    def selectable(self) -> tuple[SelectableField, ...]:
        """The fields that field selectors can select by, except name and namespace."""
        paths = [each.get("jsonPath") or "" for each in self._raw.get("selectableFields") or ()]
        return tuple(SelectableField(path.removeprefix("."), JSONPath(path)) for path in paths)

    # Validation of everything except metadata

    def validate(
        self, value: Mapping[str, Any], old: Any = MISSING, *, warnings: list[str] | None = None
    ) -> list[FieldError]:
        """Return the errors of a new object, or of a changed object if `old` is given.

        Rule violations of unchanged values are added to `warnings` instead.
        """
        errors = self.schema.validate(value, old=old)
        if self.scale is not None:
            errors += scale_paths.validate_spec(value, self.scale) + scale_paths.validate_status(value, self.scale)
        errors += self.schema.validate_embedded(value)
        errors += self.schema.validate_lists(value, old=old)
        return self._with_rules(errors, value, old, warnings)

    def validate_status(
        self, value: Mapping[str, Any], old: Mapping[str, Any], *, warnings: list[str] | None = None
    ) -> list[FieldError]:
        """Return the errors of an object whose status is the only change."""
        errors: list[FieldError] = []
        if "status" in value and self.status_schema is not None:
            errors += self.status_schema.validate(value["status"], old=old.get("status"), path=_STATUS)
        if self.scale is not None:
            errors += scale_paths.validate_status(value, self.scale)
        errors += self.schema.validate_lists(value, old=old)
        return self._with_rules(errors, value, old, warnings)

    def _with_rules(
        self, errors: list[FieldError], value: Mapping[str, Any], old: Any, warnings: list[str] | None
    ) -> list[FieldError]:
        """Return the errors, with violations of rules added.

        If there is an error with a reason in `_BLOCKING`, the rules are not evaluated.
        """
        if self.schema.rules is None:
            return errors
        if errors and any(error.reason in _BLOCKING for error in errors):
            return [*errors, _NOT_CHECKED]
        return [*errors, *evaluate_rules(self.schema.rules, value, old, warnings=warnings)]


class Definition:
    """A custom kind with all its versions."""

    def __init__(self, raw: Raw) -> None:
        """Create the kind from a decoded CustomResourceDefinition that has its defaults."""
        spec: Raw = raw.get("spec") or {}
        status: Raw = raw.get("status") or {}
        self.raw = raw
        self.name: str = (raw.get("metadata") or {}).get("name") or ""
        self.group: str = spec.get("group") or ""
        self.namespaced: bool = spec.get("scope") == "Namespaced"
        self.names = Names.of(spec.get("names") or {})
        self.accepted = Names.of(status.get("acceptedNames") or {})
        """The names under which the kind is served, which exclude names of other CustomResourceDefinitions of the
        group.
        """
        self.keeps_unknown: bool = bool(spec.get("preserveUnknownFields"))
        self.versions: Mapping[str, Version] = {
            each["name"]: Version(each, keeps_unknown=self.keeps_unknown) for each in spec.get("versions") or ()
        }
        self.conversion = _conversion(spec.get("conversion") or {})
        self._conditions: Sequence[Raw] = status.get("conditions") or ()

    @property
    def storage(self) -> Version:
        """The version in which objects are stored."""
        return next(version for version in self.versions.values() if version.storage)

    @property
    def served(self) -> list[Version]:
        """The versions that are served, in the order of preference."""
        served = {version.name: version for version in self.versions.values() if version.served}
        return [served[name] for name in newest_first(served)]

    def has_condition(self, type_: str) -> bool:
        """Return whether the definition's condition of the given type (`Established`, `Terminating` …) is True."""
        return any(each.get("type") == type_ and each.get("status") == "True" for each in self._conditions)

    def deprecation(self, version: Version) -> str | None:
        """Return the warning for clients of a version; None if the version is not deprecated."""
        if not version.deprecated:
            return None
        if version.deprecation_warning is not None:
            return version.deprecation_warning
        better = [each.name for each in self.served if not each.deprecated and is_older(version.name, each.name)]
        text = f"{self.group}/{version.name} {self.names.kind} is deprecated"
        return f"{text}; use {self.group}/{better[0]} {self.names.kind}" if better else text


def _conversion(raw: Raw) -> Conversion:
    webhook: Raw = raw.get("webhook") or {}
    return Conversion(
        raw.get("strategy") or "None", webhook.get("clientConfig"), tuple(webhook.get("conversionReviewVersions") or ())
    )


def parse(raw: Raw) -> Definition:
    """Return the kind that a CustomResourceDefinition defines."""
    return Definition(raw)
