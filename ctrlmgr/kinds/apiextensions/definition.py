"""What Kubernetes does with a CustomResourceDefinition on its way into storage.

Expressions (`x-kubernetes-validations`) are kept, but not evaluated; the caller is warned of each.

Source: apiextensions-apiserver `pkg/registry/customresourcedefinition/strategy.go`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.errors import BadRequest
from ctrlmgr.extensions.canonical import canonicalize
from ctrlmgr.extensions.compiled import Schema
from ctrlmgr.extensions.defaults import prepare_changed, prepare_new, set_defaults
from ctrlmgr.extensions.validation import validate_definition, validate_status, warnings

_REFUSED = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: '


class DefinitionStrategy(Strategy):
    """CustomResourceDefinition."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True
    revalidates = False

    def default(self, obj: Unstructured) -> None:
        """Bring nested schemas into their form, and fill in names, conversion and stored versions."""
        try:
            canonicalize(obj.get("spec") or {})
        except ValueError as error:
            raise BadRequest(f"{_REFUSED}{error}") from error
        set_defaults(obj)

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Give it its first status."""
        prepare_new(obj)

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Keep the status, in which a new storage version is noted."""
        if not ctx.subresource:
            prepare_changed(new, old)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check a new definition; `validate_update` checks a changed one, which depends on what it was."""
        return validate_definition(obj) if ctx.old is None else []

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Check a changed definition, or its status."""
        return validate_status(new) if ctx.subresource else validate_definition(new, old)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn of formats that mean nothing, and of expressions that are not evaluated."""
        return [] if ctx.subresource else warnings(obj, old) + _not_evaluated(obj, old)


def _not_evaluated(new: Unstructured, old: Unstructured | None) -> list[str]:
    known = set(_rules(old)) if old is not None else set()
    return [f"{each}: x-kubernetes-validations is not evaluated" for each in _rules(new) if each not in known]


def _rules(definition: Unstructured) -> list[str]:
    """Return where there are expressions: version, path and expression of each."""
    found = []
    for version in (definition.get("spec") or {}).get("versions") or ():
        schema = Schema((version.get("schema") or {}).get("openAPIV3Schema"))
        found += [f"{version['name']} {path or '.'}: {rule.get('rule', '')!r}" for path, rule in schema.rules]
    return found
