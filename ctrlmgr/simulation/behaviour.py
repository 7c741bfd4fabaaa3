"""Defines the behaviour of simulated containers, from phrases in annotations of pods and in a file of rules.

Guarantees: each phrase has exactly one meaning; other phrases are refused with a reason. If there are no phrases, the
container's command and known facts about its image determine the behaviour.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import yaml

from ctrlmgr.errors import SettingsError
from ctrlmgr.simulation.container_usage import Usage, read_usage

ANNOTATION: Final = "simulate.ctrlmgr.io/"
"""The prefix of the annotations of pods that contain phrases. The name of a container follows, or `pod` for all
containers.
"""
NODE_ANNOTATION: Final = "simulate.ctrlmgr.io/node"
"""The annotation of a node that describes the node's behaviour."""

DURATION: Final = r"(\d+(?:\.\d+)?)(ms|s|m|h)?"
"""Matches a duration in a phrase: a number with an optional unit, which is seconds by default."""
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_EXIT: Final = re.compile(rf"exit (\d+)(?: after {DURATION})?")
_FAIL: Final = re.compile(rf"fail (\d+) times?(?: after {DURATION})?")
_READY: Final = re.compile(rf"ready after {DURATION}")
_PULL: Final = re.compile(rf"slow pull(?: {DURATION})?")
_OOM: Final = re.compile(rf"oom(?: after {DURATION})?")
_STOP: Final = re.compile(rf"stop(?:s)? (?:after|in) {DURATION}")


class ContainerExit(NamedTuple):
    """An exit of a container: the exit code, and the seconds until the exit."""

    code: int = 0
    after: float = 0.0


class Behaviour(NamedTuple):
    """The behaviour of a container; if a property is None, the phrases do not determine the property.

    Times in a behaviour are in seconds.
    """

    exit_code: int | None = None
    exits_after: float = 0.0
    failures: int | None = None
    """The number of runs that fail before the other properties of the behaviour apply."""
    is_oom: bool = False
    never_ready: bool = False
    ready_after: float | None = None
    pull_takes: float | None = None
    pull_fails: bool = False
    stops_after: float | None = None
    """The duration of a graceful stop, in seconds."""
    ignores_stop: bool = False
    unknown: ContainerExit | None = None
    """How unknown commands end; None means that unknown commands run forever."""
    cpu: Usage | None = None
    """The CPU that the container uses; None means that it uses the default amount."""
    memory: Usage | None = None
    """The memory that the container uses; None means that it uses the default amount."""

    def over(self, other: Behaviour) -> Behaviour:
        """Return this behaviour; properties that are None get their values from `other`."""
        fields: dict[str, Any] = self._asdict()
        nothing = Behaviour()._asdict()
        changes: dict[str, Any] = {name: value for name, value in fields.items() if value != nothing[name]}
        return other._replace(**changes)

    def slowed(self, seconds: float, usual: float) -> Behaviour:
        """Return this behaviour with an image pull that takes `seconds` longer.

        By default, a pull takes `usual` seconds.
        """
        return self._replace(pull_takes=(self.pull_takes or usual) + seconds) if seconds else self

    def after(self, seconds: float) -> Behaviour:
        """Return this behaviour with times that count from a point `seconds` after the container's start."""
        if not seconds:
            return self
        ready = None if self.ready_after is None else self.ready_after + seconds
        return self._replace(exits_after=self.exits_after + seconds, ready_after=ready)


NOTHING: Final = Behaviour()


def read(text: str) -> Behaviour:
    """Return the behaviour that phrases, separated by semicolons, describe.

    Raises ValueError if a phrase is unknown.
    """
    found = NOTHING
    for phrase in filter(None, (" ".join(each.split()) for each in text.split(";"))):
        found = (_usage(phrase) or _phrase(phrase.lower())).over(found)
    return found


def read_ending(text: str) -> ContainerExit | None:
    """Return the exit that the phrase `exit CODE after TIME` describes; None for `run`.

    Raises ValueError if the text is neither of these phrases.
    """
    found = read(text)
    if found.exit_code is None and found == NOTHING:
        return None
    if found.exit_code is None or found != Behaviour(exit_code=found.exit_code, exits_after=found.exits_after):
        raise ValueError(f"{text!r} is neither `run` nor `exit CODE after TIME`")
    return ContainerExit(found.exit_code, found.exits_after)


def _usage(phrase: str) -> Behaviour | None:
    """Return a behaviour with the resource usage that a phrase describes; None if the phrase is not about usage.

    Raises ValueError if the phrase describes an invalid usage.
    """
    found = read_usage(phrase)
    if found is None:
        return None
    resource, usage = found
    return Behaviour(cpu=usage) if resource == "cpu" else Behaviour(memory=usage)


def _phrase(phrase: str) -> Behaviour:
    if match := _EXIT.fullmatch(phrase):
        return Behaviour(exit_code=int(match[1]) % 256, exits_after=read_time(match[2], match[3]))
    if match := _FAIL.fullmatch(phrase):
        return Behaviour(failures=int(match[1]), exits_after=read_time(match[2], match[3]))
    if match := _READY.fullmatch(phrase):
        return Behaviour(ready_after=read_time(match[1], match[2]))
    if match := _PULL.fullmatch(phrase):
        return Behaviour(pull_takes=read_time(match[1], match[2]) if match[1] else 30.0)
    if match := _OOM.fullmatch(phrase):
        return Behaviour(exit_code=137, is_oom=True, exits_after=read_time(match[1], match[2]))
    if match := _STOP.fullmatch(phrase):
        return Behaviour(stops_after=read_time(match[1], match[2]))
    known = {
        "crash loop": Behaviour(exit_code=1, exits_after=1.0),
        "never ready": Behaviour(never_ready=True),
        "pull error": Behaviour(pull_fails=True),
        "ignore sigterm": Behaviour(ignores_stop=True),
        "run": NOTHING,
    }
    if phrase not in known:
        raise ValueError(
            f"{phrase!r} is not a valid phrase; write `exit CODE after TIME`, `fail N times`, `crash loop`, "
            "`oom after TIME`, `never ready`, `ready after TIME`, `slow pull TIME`, `pull error`, `stop after TIME`, "
            "`ignore sigterm`, `cpu 120m + 30m*sin` or `memory 64Mi`"
        )
    return known[phrase]


def read_time(number: str | None, unit: str | None) -> float:
    """Return the number of seconds that a match of `DURATION` stands for."""
    return float(number or 0) * _UNITS[unit]


_PATTERNS: Final = ("namespace", "pod", "container", "image")


class Subject(NamedTuple):
    """A container, with the fields to which rules can refer."""

    namespace: str = ""
    pod: str = ""
    container: str = ""
    image: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    node: str = ""


class BehaviourSource(Protocol):
    """A source of behaviours: a rule or a script."""

    def behaviour_of(self, subject: Subject) -> Behaviour | None:
        """Return the behaviour of a container; None if this source defines none.

        If a rule is invalid, raises ValueError with the problem.
        """


class Rule(NamedTuple):
    """A rule: glob patterns for fields, and the behaviour of the containers whose fields match the patterns."""

    namespace: str
    pod: str
    container: str
    image: str
    behaviour: Behaviour

    def behaviour_of(self, subject: Subject) -> Behaviour | None:
        """Return the behaviour of a container; None if the rule does not match the container."""
        pairs = (
            (subject.namespace, self.namespace),
            (subject.pod, self.pod),
            (subject.container, self.container),
            (subject.image, self.image),
        )
        return self.behaviour if all(fnmatch.fnmatchcase(text, pattern) for text, pattern in pairs) else None


def read_rules(path: Path) -> tuple[Rule, ...]:
    """Return the rules that a file contains.

    Raises `SettingsError` with the line of the first invalid rule and the reason.
    """
    node = compose(path)
    if node is None:
        return ()
    if not isinstance(node, yaml.SequenceNode):
        raise SettingsError(f"{path}:{node.start_mark.line + 1}: a list of rules is expected")
    return tuple(_read_rule(path, each) for each in node.value)


def compose(path: Path, setting: str = "") -> yaml.Node | None:
    """Return the YAML document in a file; None if the file is empty.

    Raises `SettingsError` with the line of the error in the YAML, or with `setting` if the file cannot be read.
    """
    try:
        return yaml.compose(path.read_text(encoding="utf-8"))
    except OSError as error:
        where = f"{setting}: {path}" if setting else str(path)
        raise SettingsError(f"{where} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        raise SettingsError(f"{path}:{line}: {getattr(error, 'problem', None) or error}") from error


def place_of(path: Path, node: yaml.Node, field: str = "") -> str:
    """Return the position `FILE:LINE` of a field of a mapping, or of the whole mapping if the field is missing."""
    fields = node.value if isinstance(node, yaml.MappingNode) else ()
    found = next((key for key, _ in fields if key.value == field), node)
    return f"{path}:{found.start_mark.line + 1}"


def _read_rule(path: Path, node: yaml.Node) -> Rule:
    fields: Any = yaml.constructor.SafeConstructor().construct_document(node)
    if not isinstance(fields, dict) or not isinstance(fields.get("do"), str):
        where = place_of(path, node, "do")
        raise SettingsError(
            f"{where}: a rule needs `do`, and `pod`, `namespace` or other fields that select containers"
        )
    unknown = min(map(str, fields.keys() - {*_PATTERNS, "do"}), default="")
    if unknown:
        raise SettingsError(f"{place_of(path, node, unknown)}: a rule has no field {unknown!r}")
    try:
        behaviour = read(fields["do"])
    except ValueError as error:
        raise SettingsError(f"{place_of(path, node, 'do')}: {error}") from error
    namespace, pod, container, image = (str(fields.get(name, "*")) for name in _PATTERNS)
    return Rule(namespace, pod, container, image, behaviour)


class ReadBehaviour(NamedTuple):
    """The behaviour of a container, and the errors in its pod's annotations."""

    behaviour: Behaviour
    problems: tuple[str, ...] = ()


def behaviour_for(subject: Subject, rules: Iterable[BehaviourSource]) -> ReadBehaviour:
    """Return the behaviour of a container.

    The container's own annotation has precedence, followed by its pod's annotation, and then by the first matching
    rule.
    """
    found, problems = NOTHING, []
    for name in (subject.container, "pod"):
        text = subject.annotations.get(f"{ANNOTATION}{name}")
        if text is None:
            continue
        try:
            found = found.over(read(text))
        except ValueError as error:
            problems.append(f"{ANNOTATION}{name}: {error}")
    for rule in rules:
        try:
            behaviour = rule.behaviour_of(subject)
        except ValueError as error:
            problems.append(str(error))
            continue
        if behaviour is not None:
            found = found.over(behaviour)
            break
    return ReadBehaviour(found, tuple(problems))
