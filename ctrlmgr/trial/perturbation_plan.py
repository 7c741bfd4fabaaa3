"""Plans: the perturbations of one run, and where each one happens.

A plan is a YAML file with a list `perturbations`. Each entry has a `kind`, and the fields that this kind needs:

- `write` names a write of the operator, such as `create configmaps shop/web`; `occurrence` counts equal writes from 1.
- `right` names a right of the operator, such as `create configmaps`.
- `resource` names a watched resource, such as `widgets.example.com`.
- `step` and `until` are numbers of steps of the scenario, counted from 1.
- `seconds` is the duration of the perturbation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ctrlmgr.errors import SettingsError
from ctrlmgr.trial.proxy.operator_request import Call
from ctrlmgr.trial.yaml_files import read_document


class Kind(NamedTuple):
    """A kind of perturbation: its family on the command line, the fields that it needs, and its description.

    The description may contain the names of fields in braces.
    """

    family: str
    needs: tuple[str, ...]
    description: str


KINDS: Mapping[str, Kind] = {
    "crash-before": Kind("crash", ("write",), "the operator is killed before {write} reaches the server"),
    "crash-after": Kind("crash", ("write",), "the operator is killed after {write}, before it gets the answer"),
    "lost-race": Kind("race", ("write",), "another client is faster than {write}"),
    "answer-429": Kind("answers", ("write",), "the server answers {write} with 429 Too Many Requests"),
    "answer-500": Kind("answers", ("write",), "the server answers {write} with 500 Internal Server Error"),
    "answer-503": Kind("answers", ("write",), "the server answers {write} with 503 Service Unavailable"),
    "answer-504": Kind("answers", ("write",), "the server executes {write}, and answers with 504 Gateway Timeout"),
    "answer-lost": Kind("answers", ("write",), "the server executes {write}, and the connection breaks"),
    "right-taken": Kind("rights", ("right", "seconds"), "the right to {right} is taken for {seconds} s"),
    "stale-restart": Kind(
        "stale",
        ("write", "seconds"),
        "the operator is killed after {write}, and starts with a server that is behind by this write for {seconds} s",
    ),
    "stale-watch": Kind("stale", ("write", "seconds"), "the watches are behind for {seconds} s after {write}"),
    "watch-end": Kind("watches", ("write",), "all watches end after {write}"),
    "watch-expire": Kind("watches", ("write",), "all watches expire with 410 after {write}"),
    "late-events": Kind("watches", ("resource", "seconds"), "events of {resource} are {seconds} s late"),
    "no-bookmarks": Kind("watches", (), "the server sends no bookmarks"),
    "unobserved": Kind(
        "unobserved", ("step", "until"), "the operator observes only the last state of the steps {step} to {until}"
    ),
    "pods-lost": Kind("nodes", ("step",), "all pods of the scenario's namespaces are deleted after step {step}"),
}
"""All kinds of perturbations."""

FAMILIES = tuple(dict.fromkeys(kind.family for kind in KINDS.values()))
"""The names with which users choose kinds of perturbations."""


class Perturbation(NamedTuple):
    """One perturbation; fields that its kind does not need have their defaults."""

    kind: str
    write: str = ""
    occurrence: int = 1
    right: str = ""
    resource: str = ""
    step: int = 0
    until: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return a clause that describes the perturbation."""
        write = self.write if self.occurrence == 1 else f"{self.write} (occurrence {self.occurrence})"
        values = {**self._asdict(), "write": f"`{write}`", "right": f"`{self.right}`", "seconds": f"{self.seconds:g}"}
        return KINDS[self.kind].description.format(**values)

    def document(self) -> dict[str, Any]:
        """Return the entry of the perturbation in a plan."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults.get(name)}


class Plan(NamedTuple):
    """The perturbations of one run; a plan without perturbations is a clean run."""

    perturbations: tuple[Perturbation, ...] = ()

    def __str__(self) -> str:
        """Return a description of the plan."""
        if len(self.perturbations) > 3:
            return f"{self.perturbations[0]}; and {len(self.perturbations) - 1} more perturbations"
        return "; ".join(map(str, self.perturbations)) or "no perturbation"

    def text(self) -> str:
        """Return the plan as YAML."""
        entries = [each.document() for each in self.perturbations]
        return yaml.safe_dump({"perturbations": entries}, sort_keys=False, width=1000)


def load(file: Path) -> Plan:
    """Read a plan; raises `SettingsError` if the file cannot be read or is no plan."""
    document = read_document(file)
    entries = document.get("perturbations") if isinstance(document, Mapping) else None
    if not isinstance(entries, list) or len(document) > 1:
        raise SettingsError(f"{file}: a plan is a mapping whose only key `perturbations` has a list")
    return Plan(tuple(_perturbation(entry, f"{file}: perturbation {n}") for n, entry in enumerate(entries, 1)))


def _perturbation(entry: Any, place: str) -> Perturbation:
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise SettingsError(f"{place}: `kind` must be one of {', '.join(KINDS)}")
    needs = KINDS[kind].needs
    allowed = {"kind", *needs, *(("occurrence",) if "write" in needs else ())}
    if wrong := [str(key) for key in entry if key not in allowed] or [key for key in needs if key not in entry]:
        raise SettingsError(f"{place}: {kind} needs the keys {', '.join(needs) or 'kind'}; {wrong[0]!r} is not right")
    for key, value in entry.items():
        expected: type | tuple[type, ...] = type(Perturbation._field_defaults.get(key, ""))
        if not isinstance(value, (int, float) if expected is float else expected) or isinstance(value, bool):
            raise SettingsError(f"{place}: `{key}` has the wrong type")
    found = Perturbation(**entry)
    _check_write(found, place)
    return found


def _check_write(perturbation: Perturbation, place: str) -> None:
    try:
        Call.parse(perturbation.write or "create any")
    except ValueError as error:
        example = "create configmaps shop/web"
        raise SettingsError(f"{place}: `write` must be a verb, a resource and a key, such as {example!r}") from error
