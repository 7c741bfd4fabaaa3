"""Mutating policies: compiles a policy, and applies the results of its expressions to an object.

Guarantees: an apply configuration is merged as in server-side apply. An apply configuration must not contain atomic
lists, maps or structs. If a test of a JSON patch fails, the patch changes nothing.

Source: apiserver `pkg/admission/plugin/policy/mutating/{compilation,patch/smd,patch/json_patch}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctrlmgr.admission.expressions.cel_evaluation import Budget, Condition, condition_of, value_of
from ctrlmgr.admission.policies.policy_parsing import PolicyBase, base_of
from ctrlmgr.admission.policies.policy_variables import Variables
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.managedfields.atoms import atoms
from ctrlmgr.engine.patch import json_patch
from ctrlmgr.engine.patch.go_value import go_type
from ctrlmgr.engine.patch.json_patch import is_failed_test, problem_of
from ctrlmgr.errors import ApiError
from ctrlmgr.expressions.costs import TOTAL_LIMIT
from ctrlmgr.expressions.library.standard_functions import to_string
from ctrlmgr.expressions.types import list_of
from ctrlmgr.expressions.values import EvalError, Optional, StructValue, UInt
from ctrlmgr.kinds.admissionregistration.expression_variables import JSON_PATCH, OBJECT, Scopes


class NotApplied(Exception):
    """Raised if the result of an expression cannot be applied; the error message says why."""


class Mutation(NamedTuple):
    """One mutation of a MutatingAdmissionPolicy."""

    expression: Condition
    is_apply: bool
    """Whether the expression returns an apply configuration; otherwise it returns a JSON patch."""


@dataclass(frozen=True, slots=True)
class MutatingPolicy(PolicyBase):
    """A MutatingAdmissionPolicy."""

    mutations: tuple[Mutation, ...]
    reinvoked: bool
    """Whether the mutation is evaluated again after another plugin has changed the object."""


def read_mutating(obj: Object) -> MutatingPolicy:
    """Compile an admission policy from its object.

    An expression that does not compile fails when it is evaluated.
    """
    spec = obj.to_dict().get("spec") or {}
    scopes = Scopes.of(spec)
    mutations = tuple(_mutation(each, scopes) for each in spec.get("mutations") or ())
    return MutatingPolicy(
        **base_of(obj, spec, scopes), mutations=mutations, reinvoked=spec.get("reinvocationPolicy") == "IfNeeded"
    )


def _mutation(fields: Mapping[str, Any], scopes: Scopes) -> Mutation:
    is_apply = fields.get("patchType") == "ApplyConfiguration"
    required = OBJECT if is_apply else list_of(JSON_PATCH)
    held = fields.get("applyConfiguration" if is_apply else "jsonPatch") or {}
    return Mutation(condition_of(held, scopes.mutations.compiler(required)), is_apply)


def mutated(policy: MutatingPolicy, mutation: Mutation, seen: Mapping[str, Any], kind: Kind) -> Unstructured:
    """Return the mutated object, or the same object if it is unchanged.

    Raises `NoValue` if an evaluation fails, `OutOfBudget` if it costs too much, and `NotApplied` if its result cannot
    be applied.
    """
    budget = Budget(TOTAL_LIMIT)
    variables = {**seen, "variables": Variables(policy.variables, seen, budget)}
    value = value_of(mutation.expression, variables, budget)
    before: Unstructured = seen["object"]
    if mutation.is_apply:
        return _applied(before, value, kind)
    if mutation.expression.expression is not None and (problem := next(_unfit(value), None)) is not None:
        raise mutation.expression.expression.no_value(problem)
    return _patched(before, value)


def _applied(before: Unstructured, value: StructValue, kind: Kind) -> Unstructured:
    patch = {**_plain(value, OBJECT.name), "apiVersion": before.get("apiVersion"), "kind": before.get("kind")}
    merge_type = kind.merge_type
    if problems := list(merge_type.check(patch, "")):
        shown = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
        raise NotApplied(f"error applying patch: failed to convert patch object to typed object: {shown}")
    if touched := list(atoms(merge_type, patch, "")):
        words = "may not mutate atomic arrays, maps or structs"
        raise NotApplied(f"error applying patch: invalid ApplyConfiguration: {words}: {', '.join(touched)}")
    merged: Unstructured = merge_type.merge(before, patch)
    return merged


def _plain(value: Any, path: str) -> Any:
    """Return the value of an expression as JSON.

    Raises `NotApplied` if the type name of an object does not match the object's path.
    """
    if isinstance(value, StructValue):
        if path and value.name != path:
            where = "which matches field name path from root Object type"
            raise NotApplied(f'type mismatch: unexpected type name "{value.name}", expected "{path}", {where}')
        return {name: _plain(each, path and f"{path}.{name}") for name, each in value.fields.items()}
    if isinstance(value, Mapping):
        return {to_string(key): _plain(each, "") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, path) for each in value]
    if isinstance(value, Optional):
        return _plain(value.value, path)
    if isinstance(value, UInt):
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return to_string(value)


def _patched(before: Unstructured, value: Any) -> Unstructured:
    operations = [dict(_operation(each)) for each in value]
    try:
        return json_patch(before, operations)
    except ApiError as error:
        if is_failed_test(error):
            return before
        raise NotApplied(f"JSON Patch: {problem_of(error)}") from error


_TEXTS = ("op", "path", "from")


def _unfit(patch: Iterable[StructValue]) -> Iterator[EvalError]:
    """Yield errors in the fields of a JSON patch that type checks at compilation cannot find (`JSONPatchType.Val`)."""
    for operation in patch:
        for name, value in operation.fields.items():
            if name in _TEXTS and not isinstance(value, str):
                yield EvalError(f"unexpected type {go_type(value)} for JSONPatchType '{name}' field")
            elif name not in _TEXTS and name != "value":
                yield EvalError(f"unexpected JSONPatchType field: {name}")


def _operation(value: StructValue) -> Iterator[tuple[str, Any]]:
    for name, each in value.fields.items():
        yield name, _plain(each, "")
