"""Oracle `no-recovery`: after a change and the opposite change, the cluster must be as it was before.

The oracle compares two moments of rest at which the user's objects have equal content: the objects that the operator
created must be equal, too, apart from times, uids and random names. Statuses are left out, because they may contain
histories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.inspection.differences import ABSENT, differences
from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.oracles.kept_log import KeptLog, State, fields_of, named
from ctrlmgr.trial.oracles.volatile_values import masked

ORACLE = "no-recovery"

_REST: Final = 300_000
"""The minimum time without events at a moment of rest, in microseconds."""


class _Moment(NamedTuple):
    revision: Revision
    inputs: bytes
    """The content of the user's objects."""
    made: Mapping[str, list[Object]]
    """The objects that the operator created, by kind, namespace and name; random names count as equal."""


def recovery(log: KeptLog) -> list[Finding]:
    """Return the objects of the operator that differ although the user's objects are as they were before."""
    moments = [_moment(log, each) for each in _moments_of_rest(log)]
    found: dict[str, Finding] = {}
    for at, later in enumerate(moments):
        earlier = _same_before(moments[:at], later)
        if earlier is not None:
            for each in _compared(earlier, later):
                found.setdefault(each.object, each)
    return [*found.values()]


def _moments_of_rest(log: KeptLog) -> Iterator[Revision]:
    """Yield the revisions before the steps of the scenario, and the end, at which the log was quiet."""
    times = {event.revision: event.recorded_at for event in log.events}
    for step in log.record.steps[1:]:
        last = max((revision for revision in times if revision <= step.began), default=0)
        following = min((revision for revision in times if revision > step.began), default=0)
        if last > log.record.started_at and following and times[following] - times[last] >= _REST:
            yield last
    if log.record.became_quiet and log.events:
        yield log.record.ended_at


def _same_before(moments: Sequence[_Moment], later: _Moment) -> _Moment | None:
    """Return the first moment with the same inputs, if the inputs were different at a moment in between."""
    for at, earlier in enumerate(moments):
        if earlier.inputs == later.inputs and any(each.inputs != later.inputs for each in moments[at + 1 :]):
            return earlier
    return None


def _moment(log: KeptLog, revision: Revision) -> _Moment:
    state = log.at(revision)
    made: dict[str, list[Object]] = {}
    for obj in state.values():
        if _is_made(log, obj):
            made.setdefault(_name(obj), []).append(obj)
    return _Moment(revision, _inputs(log, state), made)


def _inputs(log: KeptLog, state: State) -> bytes:
    """Return the content of the objects that the user created, without metadata and status."""
    found = {
        f"{place.resource} {place.key}": _content(obj)
        for place, obj in state.items()
        if obj.uid in log.creators and log.is_user(log.creators[obj.uid])
    }
    return msgspec.json.encode(found, order="deterministic")


def _is_made(log: KeptLog, obj: Object) -> bool:
    created = log.creators.get(obj.uid)
    is_new = created is not None and created.revision > log.record.started_at
    return created is not None and is_new and log.is_operator(created)


def _name(obj: Object) -> str:
    if prefix := obj.metadata.generate_name:
        return f"{obj.kind} {obj.namespace}/{prefix}*"
    return named(obj)


def _content(obj: Object) -> Any:
    fields = fields_of(obj)
    return {name: value for name, value in fields.items() if name not in ("metadata", "status")}


def _compared(earlier: _Moment, later: _Moment) -> Iterator[Finding]:
    both = f"at revision {later.revision} from revision {earlier.revision}, although the user's objects are equal"
    for name in sorted({*earlier.made, *later.made}):
        before, after = earlier.made.get(name, []), later.made.get(name, [])
        if len(before) != len(after):
            words = f"{len(before)} then {len(after)} objects" if name.endswith("*") else _presence(bool(after))
            yield Finding(ORACLE, f"{name} differs {both}: {words}.", name, later.revision)
        elif Counter(map(_comparable, before)) != Counter(map(_comparable, after)):
            yield Finding(ORACLE, f"{name} differs {both}: {_difference(before, after)}.", name, later.revision)


def _presence(is_there: bool) -> str:
    return "it exists now" if is_there else "it is missing now"


def _comparable(obj: Object) -> str:
    return msgspec.json.encode(_view(obj), order="deterministic").decode()


def _view(obj: Object) -> Any:
    fields = masked(fields_of(obj))
    metadata = {name: each for name, each in fields["metadata"].items() if name in ("labels", "finalizers")}
    if obj.metadata.annotations:
        metadata["annotations"] = sorted(obj.metadata.annotations)
    fields.pop("status", None)
    return {**fields, "metadata": metadata}


def _difference(before: Sequence[Object], after: Sequence[Object]) -> str:
    for old, new in zip(before, after, strict=True):
        for each in differences(_view(old), _view(new)):
            was, now = ("nothing" if value is ABSENT else value for value in (each.before, each.after))
            return f"{each.path} was {was!r} and is {now!r}"
    return "its content is different"
