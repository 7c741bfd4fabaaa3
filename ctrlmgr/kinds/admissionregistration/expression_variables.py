"""The variables of CEL expressions about a write: the objects, the request, an authorizer, and policy variables.

Guarantees: an expression that this module compiles evaluates to a value of the required type. Error messages are the
same as in Kubernetes. Compiled expressions are cached, because every update and every read needs the compiled
expressions.

Source: apiserver `pkg/admission/plugin/cel/{compile,condition,composition}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.engine.cel_functions import FUNCTIONS, PATCH_FUNCTIONS
from ctrlmgr.expressions import types
from ctrlmgr.expressions.environment import Environment, Expression
from ctrlmgr.expressions.library.authorizing import AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE
from ctrlmgr.expressions.source import CompileError
from ctrlmgr.expressions.types import BOOL, DYN, INT, NOTHING, STRING, TIMESTAMP, Type, list_of, map_of, struct

_KIND: Final = {"group": STRING, "version": STRING, "kind": STRING}
_RESOURCE: Final = {"group": STRING, "version": STRING, "resource": STRING}
_USER: Final = {
    "username": STRING,
    "uid": STRING,
    "groups": list_of(STRING),
    "extra": map_of(STRING, list_of(STRING)),
}
_REQUEST: Final = {
    "kind": struct("kubernetes.GroupVersionKind"),
    "resource": struct("kubernetes.GroupVersionResource"),
    "subResource": STRING,
    "requestKind": struct("kubernetes.GroupVersionKind"),
    "requestResource": struct("kubernetes.GroupVersionResource"),
    "requestSubResource": STRING,
    "name": STRING,
    "namespace": STRING,
    "operation": STRING,
    "userInfo": struct("kubernetes.UserInfo"),
    "dryRun": BOOL,
    "options": DYN,
}
_NAMESPACE_METADATA: Final = {
    "name": STRING,
    "generateName": STRING,
    "namespace": STRING,
    "labels": map_of(STRING, STRING),
    "annotations": map_of(STRING, STRING),
    "UID": STRING,
    "creationTimestamp": TIMESTAMP,
    "deletionGracePeriodSeconds": INT,
    "deletionTimestamp": TIMESTAMP,
    "generation": INT,
    "resourceVersion": STRING,
    "finalizers": list_of(STRING),
}
_OBJECTS: Final[Mapping[str, Mapping[str, Type]]] = {
    "kubernetes.AdmissionRequest": _REQUEST,
    "kubernetes.GroupVersionKind": _KIND,
    "kubernetes.GroupVersionResource": _RESOURCE,
    "kubernetes.UserInfo": _USER,
    "kubernetes.Namespace": {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
    "kubernetes.NamespaceMetadata": _NAMESPACE_METADATA,
    "kubernetes.NamespaceSpec": {"finalizers": list_of(STRING)},
    "kubernetes.NamespaceStatus": {"phase": STRING},
}
VARIABLES: Final = "kubernetes.variables"
"""The name of the CEL type of the variable `variables`."""
OBJECT: Final = struct("Object")
"""The result type of an expression that returns an apply configuration. An apply configuration is an object with
arbitrary fields; the types of nested objects are named by their path.
"""
JSON_PATCH: Final = struct("JSONPatch")
_PATCH_FIELDS: Final = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}
_RIGHTS: Final = {"authorizer": AUTHORIZER_TYPE, "authorizer.requestResource": RESOURCE_CHECK_TYPE}


class Declared:
    """The CEL types of the objects in a write, and of the variables of a policy."""

    def __init__(self, variables: Mapping[str, Type], *, mutates: bool) -> None:
        """Declare the CEL variable `variables` with the types of the policy variables.

        If `mutates` is set, expressions may create objects and JSON patches.
        """
        self._objects = {**_OBJECTS, VARIABLES: variables}
        self._mutates = mutates

    def field(self, name: str, field: str) -> Type | None:
        """Return the CEL type of a field; None if the field does not exist."""
        if name == JSON_PATCH.name:
            return _PATCH_FIELDS.get(field, NOTHING)
        return DYN if _is_object(name) else self._objects[name].get(field)

    def has_type(self, name: str) -> bool:
        """Return whether a CEL expression may create an object of this type."""
        return self._mutates and (name == JSON_PATCH.name or _is_object(name))


def _is_object(name: str) -> bool:
    return name == OBJECT.name or name.startswith(f"{OBJECT.name}.")


_PLAIN: Final = frozenset(types.SIMPLE.values()) - {types.TYPE}


class ExpressionRefused(Exception):
    """Raised for an expression that is invalid in its field; the message contains the reason."""


class Scope:
    """The variables that the CEL expressions in one field of a policy or webhook may use."""

    def __init__(
        self,
        *,
        has_params: bool = False,
        has_authorizer: bool = True,
        variables: Mapping[str, Type] | None = None,
        object_type: Type = DYN,
        mutates: bool = False,
    ) -> None:
        """Declare the CEL variables; if `variables` is None, the name `variables` is not declared."""
        named = {
            "object": object_type,
            "oldObject": object_type,
            "request": struct("kubernetes.AdmissionRequest"),
            "namespaceObject": struct("kubernetes.Namespace"),
            **({"params": DYN} if has_params else {}),
            **(_RIGHTS if has_authorizer else {}),
            **({"variables": struct(VARIABLES)} if variables is not None else {}),
        }
        functions = PATCH_FUNCTIONS if mutates else FUNCTIONS
        self._environment = Environment(named, functions, Declared(variables or {}, mutates=mutates))

    def compile(self, source: str, expected: Iterable[Type] = ()) -> Expression:
        """Return a compiled expression whose result has one of the wanted types.

        If `expected` is empty, the result may have any type.

        Raises `ExpressionRefused`.
        """
        try:
            expression = self._environment.compile(source)
        except CompileError as error:
            raise ExpressionRefused(f"compilation failed: {error}") from error
        choices = tuple(expected)
        if choices and expression.type not in choices:
            names = [runtime_name(each) for each in choices]
            choice = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
            raise ExpressionRefused(f"must evaluate to {choice} but got {runtime_name(expression.type)}")
        return expression

    def compiler(self, *expected: Type) -> Callable[[str], Expression]:
        """Return a function that compiles expressions whose result has one of these types."""
        return lambda source: self.compile(source, expected)


class Scopes(NamedTuple):
    """The CEL variables of the expressions in each field of one policy."""

    conditions: Scope
    variables: Sequence[Scope]
    """For each policy variable, the CEL variables that its expression may use: these include the earlier policy
    variables.
    """
    rules: Scope
    """The CEL variables of validations and audit annotations."""
    messages: Scope
    mutations: Scope
    """The CEL variables of mutations, whose expressions may create objects and patches."""

    @staticmethod
    def of(spec: Mapping[str, Any], object_type: Type = DYN) -> Scopes:
        """Return the CEL variables of each field of a policy.

        A policy variable that does not compile has the dynamic type.
        """
        has_params = spec.get("paramKind") is not None
        known: dict[str, Type] | None = {} if spec.get("variables") else None
        scopes: list[Scope] = []
        for variable in spec.get("variables") or ():
            assert known is not None  # `known` is a dict because this policy has variables
            scopes.append(Scope(has_params=has_params, variables=dict(known), object_type=object_type))
            known[variable.get("name") or ""] = _type_in(scopes[-1], variable.get("expression") or "")
        return Scopes(
            Scope(has_params=has_params, object_type=object_type),
            scopes,
            Scope(has_params=has_params, variables=known, object_type=object_type),
            Scope(has_params=has_params, has_authorizer=False, variables=known, object_type=object_type),
            Scope(has_params=has_params, variables=known, object_type=object_type, mutates=True),
        )


def variable_type(type_: Type) -> Type:
    """Return the type of a policy variable, which is the result type of its expression.

    If the result type is an object, the dynamic type is returned (`convertCelTypeToDeclType`).
    """
    if type_.kind in ("list", "map"):
        return Type(type_.kind, type_.name, tuple(map(variable_type, type_.parameters)))
    return type_ if type_ in _PLAIN else DYN


def _type_in(scope: Scope, source: str) -> Type:
    try:
        return variable_type(scope.compile(source).type)
    except ExpressionRefused:
        return DYN


CONDITIONS: Final = Scope()
"""The CEL variables that are allowed in the match conditions of webhooks."""

_LONGEST_KEPT: Final = 1000
_NAMES: Final = {
    types.ANY: "google.protobuf.Any",
    types.NULL: "null_type",
    types.TIMESTAMP: "google.protobuf.Timestamp",
    types.DURATION: "google.protobuf.Duration",
}


def runtime_name(type_: Type) -> str:
    """Format a CEL type as it appears in error messages about the results of expressions."""
    if type_.parameters:
        return f"{type_.name}({', '.join(map(runtime_name, type_.parameters))})"
    return _NAMES.get(type_) or str(type_)


@lru_cache(maxsize=512)
def _kept_condition(source: str) -> Expression:
    return CONDITIONS.compile(source, (BOOL,))


def compiled_condition(source: str) -> Expression:
    """Return the compiled match condition of a webhook; raises `ExpressionRefused` if it does not compile."""
    if len(source) > _LONGEST_KEPT:
        return CONDITIONS.compile(source, (BOOL,))
    return _kept_condition(source)


def expression_errors(
    scope: Scope, source: str, expected: Iterable[Type], path: Path, *, shown_as: str | None = None
) -> Iterator[FieldError]:
    """Yield the compilation errors of a CEL expression.

    If `shown_as` is given, the errors show `shown_as` instead of the expression.
    """
    try:
        scope.compile(source, expected)
    except ExpressionRefused as error:
        yield invalid(path, source if shown_as is None else shown_as, str(error))
