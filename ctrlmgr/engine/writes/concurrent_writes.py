"""Runs several writes at once: each write is decided separately, and the log commits their appends as one group.

Guarantees: the outcome of each write is the same as if it ran alone. A write that is refused or decided again does not
affect the other writes. Commands that are not plain appends run in the order of the writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from ctrlmgr.engine.operations import Append, Appends, Operation
from ctrlmgr.errors import CtrlmgrError

T = TypeVar("T")


class _Ended(NamedTuple):
    outcome: Any


def together(operations: Sequence[Operation[T]]) -> Operation[list[T | CtrlmgrError]]:
    """Run operations; return a list with the result of each operation, or the error that it raised."""
    outcomes: list[Any] = [None] * len(operations)
    answers: list[tuple[int, Any]] = [(index, None) for index in range(len(operations))]
    while answers:
        waiting: list[tuple[int, Append]] = []
        for index, answer in answers:
            step = yield from _to_append(operations[index], answer)
            if isinstance(step, _Ended):
                outcomes[index] = step.outcome
            else:
                waiting.append((index, step))
        results = (yield Appends([append for _, append in waiting])) if waiting else []
        answers = [(index, result) for (index, _), result in zip(waiting, results, strict=True)]
    return outcomes


def _to_append(operation: Operation[Any], answer: Any) -> Operation[Append | _Ended]:
    """Run an operation until it yields an append or ends; yield all its other commands to the driver."""
    try:
        command = operation.throw(answer) if isinstance(answer, CtrlmgrError) else operation.send(answer)
        while not isinstance(command, Append) or command.late:
            try:
                found = yield command
            except CtrlmgrError as error:
                command = operation.throw(error)
            else:
                command = operation.send(found)
    except StopIteration as stop:
        return _Ended(stop.value)
    except CtrlmgrError as error:
        return _Ended(error)
    return command
