"""Completion indexes of an Indexed Job, in the compressed form of the Job's status, such as `1,3-5`.

Guarantees:
- `Intervals` are ordered, do not overlap and are not adjacent. The function `str` formats intervals like Kubernetes:
  two adjacent indexes as `3,4`, three or more as `3-5`. The parser ignores invalid parts, and indexes that are not
  below the number of completions.
- Pods with the lowest missing indexes are created first. If several active pods have the same index, the pod that has
  made the most progress is kept.

Source: Kubernetes' `pkg/controller/job/indexed_job_utils.go`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ctrlmgr.controllers.job.view import JobPod, by_rank

INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"

_LARGEST = 2**31 - 1


class Interval(NamedTuple):
    """The indexes from `first` to `last`, including both."""

    first: int
    last: int


class Intervals(tuple[Interval, ...]):
    """A set of indexes, stored as ordered intervals."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, completions: int) -> Intervals:
        """Parse the indexes in a Job's status or in a policy's rule.

        Indexes that are not below `completions` are ignored.
        """
        found: list[Interval] = []
        for part in text.split(",") if text else ():
            numbers = [_number(each) for each in part.split("-")]
            first, last = numbers[0], numbers[1] if len(numbers) > 1 else numbers[0]
            if first is None or last is None:
                continue
            if first >= completions:
                break
            last = min(last, completions - 1)
            if found and found[-1].last == first - 1:
                found[-1] = Interval(found[-1].first, last)
            else:
                found.append(Interval(first, last))
        return cls(found)

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Intervals:
        """Return the set that contains these indexes."""
        return cls().merge(cls(Interval(each, each) for each in sorted(set(indexes))))

    def merge(self, other: Iterable[Interval]) -> Intervals:
        """Return the union of two sets of indexes."""
        merged: list[Interval] = []
        for each in sorted([*self, *other]):
            if not merged or each.first > merged[-1].last + 1:
                merged.append(each)
            elif merged[-1].last < each.last:
                merged[-1] = Interval(merged[-1].first, each.last)
        return Intervals(merged)

    def with_indexes(self, indexes: Iterable[int]) -> Intervals:
        """Return a copy of the set with these indexes added."""
        return self.merge(Interval(each, each) for each in indexes)

    @property
    def total(self) -> int:
        """The number of indexes in the set."""
        return sum(each.last - each.first + 1 for each in self)

    def has(self, index: int) -> bool:
        """Return whether an index is in the set."""
        at = bisect_left(self, index, key=lambda each: each.last)
        return at < len(self) and self[at].first <= index

    def gaps(self, end: int) -> Iterator[int]:
        """Yield the indexes below `end` that are not in the set, in ascending order."""
        candidate = 0
        for each in self:
            yield from range(candidate, min(each.first, end))
            candidate = max(candidate, each.last + 1)
        yield from range(candidate, end)

    def __str__(self) -> str:
        return ",".join(map(_written, self))


def _written(interval: Interval) -> str:
    first, last = interval
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _number(text: str) -> int | None:
    """Parse an integer like Go's `strconv.Atoi`; return None if the text is not an integer."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def completion_index(annotations: Mapping[str, str]) -> int | None:
    """Return the index in a pod's annotations; None if the index is missing or invalid."""
    index = _number(annotations.get(INDEX, ""))
    return index if index is not None and index >= 0 else None


def failure_count(pod: JobPod) -> int:
    """Return how many counted failures this pod's index had before the pod was created."""
    return _count(pod.annotations.get(FAILURES, ""))


def ignored_failure_count(pod: JobPod) -> int:
    """Return how many ignored failures this pod's index had before the pod was created."""
    return _count(pod.annotations.get(IGNORED_FAILURES, ""))


def _count(text: str) -> int:
    number = _number(text)
    return number if number is not None and 0 <= number <= _LARGEST else 0


def indexes_of(pods: Iterable[JobPod]) -> set[int]:
    """Return the set of the indexes of some pods."""
    return {index for pod in pods if (index := completion_index(pod.annotations)) is not None}


def superfluous(pods: Sequence[JobPod], completions: int) -> tuple[list[JobPod], list[JobPod]]:
    """Return the active pods that must be deleted, and the other active pods.

    A pod must be deleted if it has no index, an index that is not below the number of completions, or the index of a
    pod that is kept.
    """
    gone: list[JobPod] = []
    left: list[JobPod] = []
    ordered = sorted(pods, key=_order)
    for index, same in groupby(ordered, key=_order):
        group = list(same)
        if index < 0 or index >= completions:
            gone += group
            continue
        group.sort(key=by_rank)
        gone += group[:-1]
        left.append(group[-1])
    return gone, left


def _order(pod: JobPod) -> int:
    index = completion_index(pod.annotations)
    return -1 if index is None else index


def by_completion_index(pods: Iterable[JobPod]) -> list[JobPod]:
    """Return pods sorted by index; pods without an index are first."""
    return sorted(pods, key=_order)
