"""Checks that the user writes: CEL expressions over the objects at each revision, and Python functions over the log.

A file of checks is YAML:

    checks:
    - name: one primary
      always: objects.Pod.filter(p, p.metadata.labels.role == "primary").size() <= 1
    - eventually: objects.Widget.exists(w, has(w.status) && w.status.ready)

The variable `objects` contains the objects of the cluster by kind, as lists. `always` must hold after each event since
the operator's start, and `eventually` after at least one. A Python file contains functions whose names begin with
`check_`; each takes the log of a run (`KeptLog`) and yields a sentence for each fault.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctrlmgr.engine.cel_functions import FUNCTIONS
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import EventType
from ctrlmgr.expressions.configured_expressions import compiled
from ctrlmgr.expressions.environment import Environment, Expression
from ctrlmgr.expressions.expression_parser import children
from ctrlmgr.expressions.expression_tree import Ident, Literal, Node, Select
from ctrlmgr.expressions.types import ANY, BOOL, STRING, list_of, map_of
from ctrlmgr.expressions.values import CostExceeded, EvalError
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, fields_of, place_of
from ctrlmgr.trial.yaml_files import read_document

ORACLE = "user-check"

_OBJECTS: Final = "objects"
_MODES: Final = ("always", "eventually")
_ENVIRONMENT: Final = Environment({_OBJECTS: map_of(STRING, list_of(ANY))}, FUNCTIONS)


class Check(NamedTuple):
    """A check of the user as a CEL expression."""

    name: str
    mode: str
    """`always` or `eventually`."""
    expression: Expression
    kinds: frozenset[str]
    """The kinds that the expression reads."""


Function = Callable[[KeptLog], Iterable[str | Finding]]


class Checks(NamedTuple):
    """The checks of a user."""

    expressions: tuple[Check, ...] = ()
    functions: tuple[tuple[str, Function], ...] = ()

    def run(self, log: KeptLog) -> list[Finding]:
        """Return the violations of all checks by a run."""
        found = [finding for check in self.expressions for finding in _violations(check, log)]
        return found + [finding for name, function in self.functions for finding in _called(name, function, log)]


def load(file: Path) -> Checks:
    """Read the checks of a YAML file or of a Python file; raises `SettingsError` if it contains no checks."""
    if file.suffix == ".py":
        return _load_functions(file)
    return Checks(parse(read_document(file), str(file)))


def parse(document: Any, source: str) -> tuple[Check, ...]:
    """Return the checks of a decoded YAML document; errors name `source`. Raises `SettingsError`."""
    checks = document.get("checks") if isinstance(document, Mapping) else None
    if not isinstance(checks, list) or not checks:
        raise SettingsError(f"{source}: a file of checks is a mapping whose key `checks` has a list of checks")
    return tuple(_check(each, f"{source}: check {number}") for number, each in enumerate(checks, 1))


def _check(value: Any, place: str) -> Check:
    modes = [mode for mode in _MODES if isinstance(value, Mapping) and isinstance(value.get(mode), str)]
    if len(modes) != 1 or set(value) - {"name", *_MODES}:
        raise SettingsError(f"{place}: a check has either `always` or `eventually`, and may have a `name`")
    mode = modes[0]
    try:
        expression = compiled(_ENVIRONMENT, value[mode], BOOL)
    except ValueError as error:
        raise SettingsError(f"{place}: {mode}: {error}") from error
    return Check(str(value.get("name") or value[mode]), mode, expression, frozenset(_kinds(expression.root)))


def _kinds(root: Node) -> Iterator[str]:
    """Yield the names that an expression selects from `objects`, as a field or as a constant key."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        below = [*children(node)]
        waiting += below
        if isinstance(node, Select) and isinstance(node.operand, Ident) and node.operand.name == _OBJECTS:
            yield node.field
        if any(isinstance(each, Ident) and each.name == _OBJECTS for each in below):
            yield from (each.value for each in below if isinstance(each, Literal) and isinstance(each.value, str))


def _load_functions(file: Path) -> Checks:
    try:
        names = runpy.run_path(str(file))
    except Exception as error:
        raise SettingsError(f"{file}: cannot be run: {type(error).__name__}: {error}") from error
    found = tuple((name, value) for name, value in names.items() if name.startswith("check_") and callable(value))
    if not found:
        raise SettingsError(f"{file}: contains no function whose name begins with check_")
    return Checks(functions=found)


def _called(name: str, function: Function, log: KeptLog) -> Iterator[Finding]:
    for each in function(log):
        yield each if isinstance(each, Finding) else Finding(ORACLE, f"{name}: {each}")


def _violations(check: Check, log: KeptLog) -> Iterator[Finding]:
    for revision, value in _values(check, log):
        if check.mode == "eventually" and value is True:
            return
        if check.mode == "always" and value is not True:
            reason = "is false" if value is False else f"cannot be evaluated ({value})"
            yield Finding(ORACLE, f"The check {check.name!r} {reason} at revision {revision}.", "", revision)
            return
    if check.mode == "eventually":
        yield Finding(ORACLE, f"The check {check.name!r} is not true at any revision.", "", log.record.ended_at)


def _values(check: Check, log: KeptLog) -> Iterator[tuple[int, Any]]:
    """Yield the value of an expression at the start, and after each event of a kind that the expression reads."""
    state = {place: (obj.kind, fields_of(obj)) for place, obj in log.at(log.record.started_at).items()}
    yield log.record.started_at, _value(check, [*state.values()])
    for event, _ in log.run:
        state.pop(place_of(event.object), None)
        if event.type != EventType.DELETED:
            state[place_of(event.object)] = (event.object.kind, fields_of(event.object))
        if not check.kinds or event.object.kind in check.kinds:
            yield event.revision, _value(check, [*state.values()])


def _value(check: Check, objects: Sequence[tuple[str, Any]]) -> Any:
    by_kind: dict[str, list[Any]] = {kind: [] for kind in check.kinds}
    for kind, fields in objects:
        by_kind.setdefault(kind, []).append(fields)
    try:
        return check.expression.evaluate({_OBJECTS: by_kind})[0]
    except (EvalError, CostExceeded) as error:
        return error
