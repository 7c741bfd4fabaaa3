"""Oracles `process-ended` and `panic`: the operator exits unexpectedly, or its output shows a programming error.

The output of Go programs, of Python programs and of Node.js is recognized. An error that an answer of the API server
explains, such as a refused connection, is no programming error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog

ENDED = "process-ended"
PANIC = "panic"

_LONGEST: Final = 200
_GO: Final = re.compile(r"\bpanic: .*|.*Observed a panic.*|.*invalid memory address or nil pointer dereference.*")
_PYTHON_ERRORS: Final = "AttributeError|TypeError|KeyError|IndexError|NameError|UnboundLocalError|ZeroDivisionError"
_PYTHON: Final = re.compile(
    rf"^[ |]*({_PYTHON_ERRORS}|ValueError|AssertionError|RecursionError|NotImplementedError)\b.*"
)
_NODE: Final = re.compile(
    r"^(Uncaught )?(TypeError|ReferenceError|RangeError|SyntaxError): .*|.*UnhandledPromiseReje.*"
)
_TRACEBACK: Final = "Traceback (most recent call last)"
_STACK: Final = re.compile(r"^\s+at .+:\d+")


def process_ended(log: KeptLog) -> list[Finding]:
    """Return each end of the operator's process that the trial did not cause."""
    last = _last_line(log.record.output)
    words = f' after the output "{last}"' if last else ""
    return [
        Finding(ENDED, f"The operator's process exited unexpectedly with {_code(each.code)}{words}.", "", each.revision)
        for each in log.record.exits
        if not each.by_trial
    ]


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if _GO.match(line) or _PYTHON.match(line) or _NODE.match(line)]
    return (errors or lines or [""])[-1][:_LONGEST]


def panics(log: KeptLog) -> list[Finding]:
    """Return the different programming errors in the operator's output."""
    found = dict.fromkeys(_errors(log.record.output))
    return [Finding(PANIC, f'The operator\'s output shows a programming error: "{each}".') for each in found]


def _errors(output: str) -> Iterator[str]:
    is_in_traceback = False
    lines = output.splitlines()
    for at, line in enumerate(lines):
        if _TRACEBACK in line:
            is_in_traceback = True
        elif _GO.search(line):
            yield line.strip()[:_LONGEST]
        elif is_in_traceback and (error := _PYTHON.match(line)):
            is_in_traceback = False
            yield error[0].strip(" |")[:_LONGEST]
        elif _NODE.match(line) and any(_STACK.match(each) for each in lines[at + 1 : at + 3]):
            yield line.strip()[:_LONGEST]
