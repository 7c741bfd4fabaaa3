"""Type-checks a policy's CEL expressions against the schemas of the kinds that it matches.

Guarantees: all functions are pure. Type errors are only warnings and never cause the refusal of a policy, because
admission evaluates `object` and `params` dynamically. A policy variable that is an object or does not compile has the
type dyn. Source: apiserver `pkg/admission/plugin/policy/validating/typechecking.go` (`Check`, `CheckExpression`,
`buildEnvSet`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.expressions.environment import Environment
from ctrlmgr.expressions.library.authorizing import AUTHORIZER_TYPE
from ctrlmgr.expressions.source import CompileError
from ctrlmgr.expressions.types import DYN, Type, struct
from ctrlmgr.extensions.rules.schema_types import Fields
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.kinds.admissionregistration.expression_variables import VARIABLES, Declared, variable_type


class Checked(NamedTuple):
    """A kind against which a policy is checked."""

    gvk: GroupVersionKind
    schema: Raw


def expression_warnings(
    spec: Mapping[str, Any], against: Sequence[Checked], params: Checked | None
) -> list[dict[str, str]]:
    """Return the type errors in a policy's validations, in the format of the policy's status.

    If `params` is None, the type of the parameters is unknown.
    """
    environments = [(each.gvk, _environment(spec, each, params)) for each in against]
    return list(_warnings(spec, environments))


_Environments = Sequence[tuple[GroupVersionKind, Environment]]


def _warnings(spec: Mapping[str, Any], environments: _Environments) -> Iterator[dict[str, str]]:
    for at, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            source = validation.get(field) or ""
            if not source and field == "messageExpression":
                continue
            problems = [
                _warning_text(gvk, problem) for gvk, each in environments if (problem := _problem(each, source))
            ]
            if problems:
                yield {"fieldRef": f"spec.validations[{at}].{field}", "warning": "\n".join(problems)}


def _problem(environment: Environment, source: str) -> str:
    try:
        environment.compile(source)
    except CompileError as error:
        return str(error)
    return ""


def _warning_text(gvk: GroupVersionKind, problem: str) -> str:
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}: {problem}\n"


class _Typed(Declared):
    """Declarations of the types of objects, with the fields of objects in requests."""

    def __init__(self, variables: Mapping[str, Type], fields: Sequence[Fields]) -> None:
        super().__init__(variables, mutates=False)
        self._fields = fields

    def field(self, name: str, field: str) -> Type | None:
        for each in self._fields:
            if each.has_objects(name):
                return each.field(name, field)
        return super().field(name, field)


def _environment(spec: Mapping[str, Any], against: Checked, params: Checked | None) -> Environment:
    """Return the CEL environment of a policy's validations, including its variables."""
    variables: dict[str, Type] = {}
    fields = (Fields(), Fields())
    object_type = _declared(against, fields[0], 1)
    named = {
        "object": object_type,
        "oldObject": object_type,
        "request": struct("kubernetes.AdmissionRequest"),
        "namespaceObject": struct("kubernetes.Namespace"),
        "authorizer": AUTHORIZER_TYPE,
        "variables": struct(VARIABLES),
    }
    if spec.get("paramKind") is not None:
        named["params"] = _declared(params, fields[1], 2) if params is not None else DYN
    environment = Environment(named, FUNCTIONS, _Typed(variables, fields))
    for variable in spec.get("variables") or ():  # Each variable may refer to earlier ones.
        try:
            type_ = variable_type(environment.compile(variable.get("expression") or "").type)
        except CompileError:
            type_ = DYN
        variables[variable.get("name") or ""] = type_
    return environment


def _declared(against: Checked, fields: Fields, number: int) -> Type:
    """Return the CEL type of a kind's objects; the argument `number` makes the name of the type unique."""
    return fields.declare(against.schema, is_resource=True, name=f"{against.gvk.kind}{number}") or DYN
