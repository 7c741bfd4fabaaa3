"""A compiled schema, which prunes, defaults and validates values of one version of a kind.

Guarantees: several threads may use a compiled schema. Each part of a compiled schema is compiled on first use. Methods
that change a value change it in place. This module compiles rules (`x-kubernetes-validations`); `rules.rule_evaluation`
evaluates the compiled rules.

Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go` (`unstructuredSchemaCoercer`,
`unstructuredDefaulter`) and `pkg/registry/customresource/{strategy,validator}.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from ctrlmgr.api.field import ROOT, FieldError, Path, invalid
from ctrlmgr.extensions.rules.compiled_rules import Node as RulesNode
from ctrlmgr.extensions.rules.compiled_rules import compile_rules
from ctrlmgr.extensions.schema_validation.correlated_value import Correlation
from ctrlmgr.extensions.schema_validation.error_validator import explain
from ctrlmgr.extensions.schema_validation.fast_validator import accepting
from ctrlmgr.extensions.schema_validation.result import NOWHERE
from ctrlmgr.extensions.schema_validation.schema_node import Node
from ctrlmgr.extensions.shaping import embedded_metadata, list_keys
from ctrlmgr.extensions.shaping.defaulting import compile_defaults
from ctrlmgr.extensions.shaping.null_removal import drop_nulls
from ctrlmgr.extensions.shaping.pruning_check import compile_clean
from ctrlmgr.extensions.shaping.schema_defaults import pruned_defaults
from ctrlmgr.extensions.shaping.structural_pruning import prune
from ctrlmgr.extensions.structural import MISSING, Raw, Structural
from ctrlmgr.work_budget import TooMuchWork, bounded

_MOST_STEPS: Final = 5_000_000
"""The maximum number of steps (`work_budget`) for the validation of a value."""
_PARTS = ("_is_clean", "_fill", "_has_embedded", "_accepts", "_is_unique", "rules")
"""The parts of a compiled schema that are compiled on first use."""


class Schema:
    """A compiled schema of one version of a kind."""

    def __init__(self, raw: Raw | None, *, keeps_unknown: bool = False) -> None:
        """Compile the schema of a version; if the schema is None, every value is valid and all fields are pruned.

        The argument `keeps_unknown` is `spec.preserveUnknownFields` of old CustomResourceDefinitions, which disables
        pruning.
        """
        self.raw: Raw = raw or {}
        self.keeps_unknown = keeps_unknown

    @cached_property
    def structural(self) -> Structural:
        """The schema as a structural schema."""
        return Structural(self.raw)

    @cached_property
    def node(self) -> Node:
        """The schema in the form that validation uses."""
        return Node(self.raw)

    def prepare(self) -> None:
        """Compile every part of the schema now instead of on first use."""
        for part in _PARTS:
            getattr(self, part)

    # Decoding

    def read(self, value: dict[str, Any], *, drop_invalid: bool = False) -> tuple[list[str], FieldError | None]:
        """Apply all steps of decoding to an object, in place.

        The steps of decoding are: prune, drop nulls, coerce embedded metadata, set defaults. The result contains the
        paths of unknown fields in Kubernetes' order, and the error in embedded metadata. The metadata of the object
        itself is not changed; `shaping.embedded_metadata.read_metadata` reads it.
        """
        unknown = self.prune(value)
        coerced = self.coerce(value, drop_invalid=drop_invalid)
        if coerced.error is None:
            self.default(value)
        return unknown + coerced.unknown, coerced.error

    def prune(self, value: dict[str, Any]) -> list[str]:
        """Prune an object and drop nulls that are not allowed; return the sorted paths of the pruned fields."""
        if self.keeps_unknown or self._is_clean(value):
            return []
        gone = prune(value, self.structural)
        drop_nulls(value, self.structural)
        return gone

    @cached_property
    def _is_clean(self) -> Callable[[Any], bool]:
        return compile_clean(self.structural)

    def default(self, value: Any) -> None:
        """Set defaults."""
        if self._fill is not None:
            self._fill(value)

    @cached_property
    def _fill(self) -> Callable[[Any], None] | None:
        if not self.has_defaults:
            return None
        return compile_defaults(self.structural, pruned_defaults(self.structural))

    @cached_property
    def has_defaults(self) -> bool:
        """Return whether the schema has defaults at any depth."""
        return _has_defaults(self.structural)

    def has_default_of(self, name: str) -> bool:
        """Return whether the schema has a default for a top-level field."""
        field = self.structural.properties.get(name)
        return field is not None and field.default is not MISSING

    def coerce(self, value: Any, *, drop_invalid: bool = False) -> embedded_metadata.Coerced:
        """Convert the metadata of embedded resources to its canonical form."""
        if not self._has_embedded:
            return embedded_metadata.Coerced([])
        return embedded_metadata.coerce(value, self.structural, drop_invalid=drop_invalid)

    @cached_property
    def _has_embedded(self) -> bool:
        return embedded_metadata.has_embedded(self.structural)

    # Validation

    def validate(self, value: Any, *, old: Any = MISSING, path: Path = ROOT) -> list[FieldError]:
        """Return a value's violations of the schema's OpenAPI keywords.

        If `old` is given, violations by parts that have not changed are ignored.
        """
        try:
            with bounded(_MOST_STEPS):
                if self._accepts(value):
                    return []
                correlation = None if old is MISSING else Correlation(self.node, value, old)
                result = explain(self.node, value, correlation)
        except TooMuchWork:
            return [invalid(path or NOWHERE, "", "takes too many steps to validate against the schema")]
        return result.field_errors(path)

    @cached_property
    def _accepts(self) -> Callable[[Any], bool]:
        return accepting(self.node)

    def validate_embedded(self, value: Any) -> list[FieldError]:
        """Return the errors of the metadata of embedded resources."""
        return embedded_metadata.validate_embedded(value, self.structural) if self._has_embedded else []

    def validate_lists(self, value: Any, *, old: Any = MISSING) -> list[FieldError]:
        """Return the errors for duplicates in lists that are sets or maps.

        If the old value already had duplicates, no errors are returned.
        """
        if self._is_unique is None or self._is_unique(value):
            return []
        if old is not MISSING and list_keys.validate_lists(old, self.structural):
            return []
        return list_keys.validate_lists(value, self.structural)

    @cached_property
    def _is_unique(self) -> Callable[[Any], bool] | None:
        return list_keys.compile_unique(self.structural)

    @cached_property
    def rules(self) -> RulesNode | None:
        """The compiled `x-kubernetes-validations` of the schema; None if the schema has no rules."""
        return compile_rules(self.raw)


def _has_defaults(schema: Structural) -> bool:
    return any(below.default is not MISSING or _has_defaults(below) for below in schema.below())
