"""Type-checks the tree of an expression: sets the type of each node, and resolves names and calls.

Guarantees: errors are the same as those of cel-go's checker, and all errors of an expression are reported together.
Values whose type is unknown before evaluation cause no type errors.

Source: cel-go `checker/{checker,errors,env}.go`, `cel/validator.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ctrlmgr.expressions import types
from ctrlmgr.expressions.declarations import TYPE_NAMES, Functions, Overload
from ctrlmgr.expressions.expression_parser import children, qualified_name
from ctrlmgr.expressions.expression_tree import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    StructOf,
)
from ctrlmgr.expressions.source import CompileError, Problem
from ctrlmgr.expressions.types import BOOL, DYN, ERROR, Objects, Type
from ctrlmgr.expressions.values import type_of

_LOGICAL = ("_&&_", "_||_")
_FIELDLESS = "kubernetes."
"""The prefix of the names of types in Kubernetes' libraries; in cel-go, these are objects without declared fields."""


def check(source: str, root: Node, variables: Mapping[str, Type], functions: Functions, objects: Objects) -> Type:
    """Return the type of an expression, and annotate its nodes; raises `CompileError` if there are type errors."""
    checker = _Checker(variables, functions, objects)
    try:
        checker.check(root)
    except RecursionError:
        checker.problems.append(Problem(0, "expression recursion limit exceeded: 250"))
    if checker.problems:
        raise CompileError(source, checker.problems)
    return checker.substitute_types(root)


class _Checker:
    def __init__(self, variables: Mapping[str, Type], functions: Functions, objects: Objects) -> None:
        self._scopes: list[Mapping[str, Type]] = [variables]
        self._functions = functions
        self._objects = objects
        self._bindings: types.Bindings = {}
        self._fresh = 0
        self.problems: list[Problem] = []

    def substitute_types(self, root: Node) -> Type:
        """Replace type parameters in all nodes by the types to which they are bound; return the type of the root."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            node.type = types.substituted(self._bindings, node.type, free_is_dyn=True)
            waiting += children(node)
        return root.type

    def check(self, node: Node) -> Type:
        node.type = self._type_of(node)
        return node.type

    def _type_of(self, node: Node) -> Type:
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Literal):
            found = type_of(node.value)
            return types.NULL if found.kind == "null" else found
        if isinstance(node, ListOf):
            return self._list(node)
        if isinstance(node, MapOf):
            return self._map(node)
        if isinstance(node, StructOf):
            return self._struct(node)
        return self._comprehension(node)

    def _note(self, at: int, text: str) -> None:
        self.problems.append(Problem(at, text))

    def _undeclared(self, at: int, name: str) -> Type:
        self._note(at, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _is_assignable(self, given: Sequence[Type], expected: Sequence[Type]) -> bool:
        found = types.assignable(self._bindings, given, expected)
        if found is None:
            return False
        self._bindings = found
        return True

    def _now(self, type_: Type, *, free_is_dyn: bool = False) -> Type:
        return types.substituted(self._bindings, type_, free_is_dyn=free_is_dyn)

    def _new_parameter(self) -> Type:
        self._fresh += 1
        return types.parameter(f"_var{self._fresh - 1}")

    # Names

    def _named(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        if name in TYPE_NAMES:
            return types.type_of(TYPE_NAMES[name])
        if self._objects.has_type(name):
            return types.type_of(types.struct(name))
        return None

    def _ident(self, node: Ident) -> Type:
        found = self._named(node.name)
        written = f".{node.name}" if node.is_absolute else node.name
        return self._undeclared(node.at, written) if found is None else found

    def _select(self, node: Select) -> Type:
        name = qualified_name(node)
        if name and (found := self._named(name)) is not None and not self._is_shadowed(name):
            node.ident = name
            return found
        type_ = self._selected(node)
        return BOOL if node.test_only else type_

    def _is_shadowed(self, name: str) -> bool:
        """Return whether the first part of a qualified name is a loop variable."""
        first = name.partition(".")[0]
        return any(first in scope for scope in self._scopes[1:])

    def _selected(self, node: Select) -> Type:
        operand = self._now(self.check(node.operand))
        target = types.unwrapped(operand)
        result = ERROR
        if target.kind == "map":
            result = target.parameters[1] if target.parameters else DYN
        elif target.kind == "struct":
            result = self._field(node.at, target.name, node.field)
        elif target.kind == "parameter":
            self._is_assignable([DYN], [target])
            result = DYN
        elif target.kind == "opaque" and target.name.startswith(_FIELDLESS):
            self._note(node.at, f"unexpected failed resolution of '{target.name}'")
        else:
            if not types.is_dyn(target) and not node.optional:
                self._note(node.at, f"type '{target}' does not support field selection")
            result = DYN
        return types.optional_of(result) if node.optional or types.is_optional(operand) else result

    def _field(self, at: int, name: str, field: str) -> Type:
        found = self._objects.field(name, field)
        if found is None:
            self._note(at, f"undefined field '{field}'")
            return ERROR
        return found

    # Calls

    def _call(self, node: Call) -> Type:
        for each in node.arguments:
            self.check(each)
        if node.target is None:
            overloads = self._functions.get(node.function)
            return self._undeclared(node.at, node.function) if overloads is None else self._resolve(node, overloads)
        prefix = qualified_name(node.target)
        name = f"{prefix}.{node.function}"
        if prefix and (overloads := self._functions.get(name)) is not None and not self._is_shadowed(name):
            node.namespaced = name
            return self._resolve(node, overloads)
        self.check(node.target)
        overloads = self._functions.get(node.function)
        return self._undeclared(node.at, node.function) if overloads is None else self._resolve(node, overloads)

    def _resolve(self, node: Call, overloads: Sequence[Overload]) -> Type:
        """Return the result type of the matching overloads of a call; `dyn` if their result types differ."""
        if node.function in _LOGICAL:
            node.overloads = tuple(overloads)
            return self._logical(node)
        is_member = node.target is not None and not node.namespaced
        given = [each.type for each in node.arguments]
        if is_member and node.target is not None:
            given.insert(0, node.target.type)
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in overloads:
            if overload.is_member is not is_member:
                continue
            expected, promised = self._instance(overload)
            if self._is_assignable(given, expected):
                fitting.append(overload)
                found = self._now(promised)
                if result is None:
                    result = found
                elif not types.is_dyn(result) and result != found:
                    result = DYN
        if result is None:
            applied = types.called([self._now(each, free_is_dyn=True) for each in given], as_member=is_member)
            name = node.namespaced or node.function
            self._note(node.at, f"found no matching overload for '{name}' applied to '{applied}'")
            return ERROR
        node.overloads = tuple(fitting)
        return result

    def _instance(self, overload: Overload) -> tuple[Sequence[Type], Type]:
        """Return a signature whose type parameters are replaced by new type parameters."""
        names = {each for type_ in (*overload.arguments, overload.result) for each in _parameters(type_)}
        if not names:
            return overload.arguments, overload.result
        fresh = {name: self._new_parameter() for name in sorted(names)}
        arguments = [types.substituted(fresh, each, free_is_dyn=False) for each in overload.arguments]
        return arguments, types.substituted(fresh, overload.result, free_is_dyn=False)

    def _logical(self, node: Call) -> Type:
        fits = [self._expect(each, BOOL) for each in node.arguments]
        return BOOL if all(fits) else ERROR

    def _expect(self, node: Node, expected: Type) -> bool:
        if self._is_assignable([node.type], [expected]):
            return True
        self._mismatch(node.at, expected, node.type)
        return False

    def _mismatch(self, at: int, expected: Type, given: Type) -> None:
        shown = [self._now(each, free_is_dyn=True) for each in (expected, given)]
        self._note(at, f"expected type '{shown[0]}' but found '{shown[1]}'")

    # Lists, maps and structs

    def _joined(self, before: Type | None, type_: Type) -> Type:
        if before is None:
            return type_
        return types.most_general(before, type_) if self._is_assignable([before], [type_]) else DYN

    def _optional_part(self, node: Node, type_: Type) -> Type:
        if not types.is_optional(type_) and not types.is_dyn(type_):
            self._mismatch(node.at, types.optional_of(type_), type_)
        return types.unwrapped(type_)

    def _list(self, node: ListOf) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            type_ = self.check(element)
            if index in node.optional:
                type_ = self._optional_part(element, type_)
            joined = self._joined(joined, type_)
        return types.list_of(joined or self._new_parameter())

    def _map(self, node: MapOf) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            # The keys of a map are expressions; only the keys of a struct are names.
            assert not isinstance(entry.key, str)
            keys = self._joined(keys, self.check(entry.key))
            values = self._joined(values, self._entry_type(entry))
        return types.map_of(keys or self._new_parameter(), values or self._new_parameter())

    def _entry_type(self, entry: Entry) -> Type:
        type_ = self.check(entry.value)
        return self._optional_part(entry.value, type_) if entry.optional else type_

    def _struct(self, node: StructOf) -> Type:
        named = self._named(node.name)
        if named is None:
            return self._undeclared(node.at, node.name)
        if named.kind != "type" or named.parameters[0].kind != "struct":
            words = "type" if named.kind != "type" else "message type"
            self._note(node.at, f"'{node.name}' is not a {words}")
            return ERROR
        for entry in node.fields:
            given = self._entry_type(entry)
            expected = self._field(entry.at, node.name, str(entry.key))
            if not self._is_assignable([expected], [given]):
                shown = self._now(given, free_is_dyn=True)
                self._note(
                    entry.at, f"expected type of field '{entry.key}' is '{expected}' but provided type is '{shown}'"
                )
        return named.parameters[0]

    # Loops

    def _comprehension(self, node: Comprehension) -> Type:
        looped = self._now(self.check(node.range))
        accumulated = self.check(node.initial)
        first, second = self._loop_types(node, looped)
        with self._scope({node.accumulator: accumulated}):
            own = {node.variable: first, **({node.second: second} if node.second else {})}
            with self._scope(own):
                self.check(node.condition)
                self._expect(node.condition, BOOL)
                self.check(node.step)
                self._expect(node.step, accumulated)
            return self._now(self.check(node.result))

    def _loop_types(self, node: Comprehension, looped: Type) -> tuple[Type, Type]:
        if looped.kind == "map":
            return looped.parameters[0], looped.parameters[1]
        if looped.kind == "list":
            return (types.INT, looped.parameters[0]) if node.second else (looped.parameters[0], DYN)
        if looped.kind == "parameter":
            self._is_assignable([DYN], [looped])
        elif not types.is_dyn(looped) or looped == types.ANY:
            words = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._note(node.range.at, f"expression of type '{looped}' {words}")
            return ERROR, ERROR
        return DYN, DYN

    @contextmanager
    def _scope(self, names: Mapping[str, Type]) -> Iterator[None]:
        self._scopes.append(names)
        yield
        self._scopes.pop()


def _parameters(type_: Type) -> Iterator[str]:
    if type_.kind == "parameter":
        yield type_.name
    for each in type_.parameters:
        yield from _parameters(each)
