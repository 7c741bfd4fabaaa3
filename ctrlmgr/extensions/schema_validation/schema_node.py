"""A schema compiled for validation: a tree of nodes with precomputed values, one node for each nested schema.

Source: apiextensions-apiserver `pkg/apiserver/validation/validation.go` (`ConvertJSONSchemaPropsWithPostProcess`),
kube-openapi `pkg/validation/validate/{schema,type}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ctrlmgr.extensions.formats import Format, format_named, is_recognized
from ctrlmgr.extensions.schema_validation.enum_values import Listed
from ctrlmgr.extensions.schema_validation.number_rules import NumberRules
from ctrlmgr.extensions.structural import INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, Raw, single_items
from ctrlmgr.regexp import Regexp, TooMuchWork, compiled


class Node:
    """One schema."""

    def __init__(self, raw: Raw, *, is_default: bool = False) -> None:
        """Create a node for a schema in a definition.

        The argument `is_default` selects Kubernetes' form for validating defaults, in which
        `x-kubernetes-int-or-string` does not affect the type.
        """
        self._raw = raw
        self._is_default = is_default
        int_or_string = bool(raw.get(INT_OR_STRING)) and not is_default
        type_: str = raw.get("type") or ""
        self.types: tuple[str, ...] = ("integer", "string") if int_or_string else (type_,) if type_ else ()
        self.shown_types = ",".join(self.types)
        self.nullable: bool = bool(raw.get("nullable"))
        self.format = self._format(raw.get("format") or "")
        self.format_check: Format | None = format_named(self.format) if self.format else None
        self.enum: Sequence[Any] = raw.get("enum") or ()
        self.accepts: Callable[[Any], bool] | None = None
        """The compiled function that checks values of the schema; `fast_validator` sets it on first use."""
        self.longest: int | None = raw.get("maxLength")
        self.shortest: int | None = raw.get("minLength")
        self.pattern: str = raw.get("pattern") or ""
        self.most_items: int | None = raw.get("maxItems")
        self.least_items: int | None = raw.get("minItems")
        self.most_properties: int | None = raw.get("maxProperties")
        self.least_properties: int | None = raw.get("minProperties")
        self.required: Sequence[str] = raw.get("required") or ()
        self.list_type: str = raw.get(LIST_TYPE) or ""
        self.list_map_keys: Sequence[str] = raw.get(LIST_MAP_KEYS) or ()
        self.forbids_others: bool = raw.get("additionalProperties") is False

    def _format(self, format: str) -> str:
        """Return the schema's format; the empty string if the format is unknown for the schema's type."""
        if self._is_default:
            return format
        return format if format and is_recognized(format, self.types[0] if len(self.types) == 1 else "") else ""

    @cached_property
    def numbers(self) -> NumberRules:
        """The rules for numbers in the schema."""
        return NumberRules.of(self._raw, self.types[0] if len(self.types) == 1 else "", self.format)

    @cached_property
    def listed(self) -> Listed:
        """The indexed values of the enumeration; None if the schema has no enumeration."""
        return Listed(self.enum)

    @cached_property
    def regexp(self) -> Regexp:
        """The compiled pattern; raises PatternError if the pattern is invalid."""
        return compiled(self.pattern)

    def matches(self, text: str) -> bool:
        """Return whether a string matches the pattern; False also if matching takes too many steps."""
        try:
            return self.regexp.search(text)
        except TooMuchWork:
            return False

    def _below(self, raw: Raw) -> Node:
        return Node(raw, is_default=self._is_default)

    @cached_property
    def properties(self) -> Mapping[str, Node]:
        """The schemas of the declared fields of an object."""
        return {name: self._below(each) for name, each in (self._raw.get("properties") or {}).items()}

    @cached_property
    def additional(self) -> Node | None:
        """The schema of an object's undeclared fields."""
        raw = self._raw.get("additionalProperties")
        return self._below(raw) if isinstance(raw, Mapping) else None

    @cached_property
    def items(self) -> Node | None:
        """The schema of a list's items."""
        raw = single_items(self._raw)
        return None if raw is None else self._below(raw)

    @cached_property
    def all_of(self) -> Sequence[Node]:
        """The schemas under `allOf`; all of them must accept a value."""
        return self._junctor("allOf")

    @cached_property
    def any_of(self) -> Sequence[Node]:
        """The schemas under `anyOf`; at least one of them must accept a value."""
        return self._junctor("anyOf")

    @cached_property
    def one_of(self) -> Sequence[Node]:
        """The schemas under `oneOf`; exactly one of them must accept a value."""
        return self._junctor("oneOf")

    @cached_property
    def not_(self) -> Node | None:
        """The schema under `not`, which must not accept a value."""
        raw = self._raw.get("not")
        return self._below(raw) if isinstance(raw, Mapping) else None

    def _junctor(self, name: str) -> Sequence[Node]:
        return tuple(self._below(each) for each in self._raw.get(name) or ())
