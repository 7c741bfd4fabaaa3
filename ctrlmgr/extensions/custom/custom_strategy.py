"""The strategy of a custom kind, which prepares and validates its objects.

Guarantees: the rules are those of the schema and of apiextensions-apiserver's `pkg/registry/customresource`. If the
kind has a status subresource, a write to the object ignores the status, and a write to the status ignores all other
fields. Every change outside metadata and such a status increases the generation. No object is created while the
CustomResourceDefinition is being deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ctrlmgr.api.field import FieldError, invalid
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Key
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.api_errors import forbidden
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.name_formats import qualified_name
from ctrlmgr.extensions.definition import Version
from ctrlmgr.extensions.validation_cost import relative_cost
from ctrlmgr.golang.go_text import quote

_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
_FINALIZERS = "metadata.finalizers"

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class CustomStrategy(Strategy):
    """The strategy of one version of a custom kind."""

    allow_unconditional_update = False
    any_finalizer = True
    revalidates = 0

    def __init__(self, definition: str, kind: str, version: Version, read: Callable[[Object], Object]) -> None:
        """Create the strategy for a version of the CustomResourceDefinition with this name.

        The function `read` converts a stored object to this version.
        """
        self._definition = definition
        self._kind = kind
        self._version = version
        self._read = read
        self.has_status = version.has_status
        self.fields = tuple(field.name for field in version.selectable)

    def validation_cost(self, body: bytes) -> int:
        """Return the validation cost, which depends on the schema.

        Each `anyOf` or `oneOf`, each CEL rule and each default in the schema makes validation more expensive.
        """
        return relative_cost(self._version.raw_schema or {})

    def begin_create(self, ctx: Context, obj: Unstructured) -> None:
        """Raise `Forbidden` if the CustomResourceDefinition is being deleted.

        A new object would be deleted together with the CustomResourceDefinition.
        """
        definition = ctx.view.get(DEFINITIONS, Key("", self._definition))
        if definition is not None and definition.is_terminating:
            name = metadata_of(obj).get("name", "")
            reason = "create not allowed while custom resource definition is terminating"
            raise forbidden(ctx.kind.resource, name, reason)

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the generation of a new object to 1."""
        metadata_of(obj)["generation"] = 1

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Increase the generation if the object has changed.

        If the write is to the status subresource, keep the old metadata.
        """
        if ctx.subresource == "status":
            _keep_metadata(new, old)
        elif _content(new) != _content(old):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate a new object; for every write, check kind and apiVersion."""
        errors = self._type_errors(ctx, obj)
        return errors if errors or ctx.old is not None else self._version.validate(obj)

    def _type_errors(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        expected = ctx.kind.api_version
        errors = [] if kind == self._kind else [invalid("kind", kind, f"must be {self._kind}")]
        return (
            errors if api_version == expected else [*errors, invalid("apiVersion", api_version, f"must be {expected}")]
        )

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate a changed object; unchanged invalid values are accepted."""
        if self._type_errors(ctx, new):
            return []
        if ctx.subresource == "status":
            return self._version.validate_status(new, old, warnings=ctx.warnings)
        return self._version.validate(new, old, warnings=ctx.warnings)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return warnings about new finalizers without a domain."""
        if ctx.subresource == "status":
            return []
        before = (old or {}).get("metadata", {}).get("finalizers") or ()
        added = set(metadata_of(obj).get("finalizers") or ()) - set(before)
        return [warning for finalizer in sorted(added) for warning in _finalizer_warnings(finalizer)]

    def field_refusal(self, field: str) -> str:
        """Return the error message for a field that field selectors do not support."""
        return f"field label not supported: {field}"

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the values of the selectable fields in the version of the kind."""
        fields = _decode(self._read(obj).body)
        return {field.name: field.read(fields) for field in self._version.selectable}


def _content(obj: Unstructured) -> Unstructured:
    return {name: value for name, value in obj.items() if name != "metadata"}


def _keep_metadata(new: Unstructured, old: Unstructured) -> None:
    """Keep all stored metadata of an object except managedFields."""
    metadata = dict(old["metadata"])
    managed = new["metadata"].get("managedFields")
    if managed:
        metadata["managedFields"] = managed
    else:
        metadata.pop("managedFields", None)
    new.update(metadata=metadata, kind=old["kind"], apiVersion=old["apiVersion"])


def _finalizer_warnings(finalizer: str) -> list[str]:
    warnings = [f"{_FINALIZERS}: {quote(finalizer)}: {problem}" for problem in qualified_name(finalizer)]
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        including = " including a path (/)" if "." in finalizer else ""
        warnings.append(
            f"{_FINALIZERS}: {quote(finalizer)}: prefer a domain-qualified finalizer name{including} to avoid"
            " accidental conflicts with other finalizer writers"
        )
    return warnings
