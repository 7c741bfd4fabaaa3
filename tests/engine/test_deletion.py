from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, PODS
from ctrlmgr.engine.deletion import DeletionDecision, GracePeriod, check_preconditions, decide
from ctrlmgr.engine.request_options import DeleteOptions
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.errors import Conflict

NOW = "2026-01-01T00:00:00Z"
SOON = "2026-01-01T00:00:10Z"
LATER = "2026-01-01T00:00:30Z"


class GracefulStrategy(Strategy):
    def grace_period(self, obj: Object, asked: int | None) -> int:
        return 30 if asked is None else asked


class FinalizerStrategy(Strategy):
    def finalizers(self, obj: Object) -> Sequence[str]:
        return ("kubernetes",)


class UncollectedStrategy(Strategy):
    default_propagation = ""


class Orphaning(Strategy):
    default_propagation = "Orphan"


def pod(**metadata: Any) -> Object:
    fields = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "uid": "u", **metadata}}
    return Object.from_dict(fields).at(7)


def terminating(seconds: int | None, **metadata: Any) -> Object:
    grace = {} if seconds is None else {"deletionGracePeriodSeconds": seconds}
    return pod(deletionTimestamp=LATER, **grace, **metadata)


@pytest.mark.parametrize(
    ("strategy", "obj", "seconds", "grace", "goes_now"),
    [
        (Strategy(), pod(), None, None, True),
        (Strategy(), pod(), 5, None, True),
        (Strategy(), pod(finalizers=["a/b"]), 0, None, False),
        (Strategy(), terminating(0, finalizers=["a/b"]), 0, None, False),
        (FinalizerStrategy(), pod(), 0, None, False),
        (GracefulStrategy(), pod(), None, GracePeriod(30, LATER), False),
        (GracefulStrategy(), pod(), 10, GracePeriod(10, SOON), False),
        (GracefulStrategy(), pod(), 0, GracePeriod(0, NOW), True),
        (GracefulStrategy(), pod(), -7, GracePeriod(1, "2026-01-01T00:00:01Z"), False),
        (GracefulStrategy(), pod(finalizers=["a/b"]), 0, GracePeriod(0, NOW), False),
        (GracefulStrategy(), terminating(30), None, GracePeriod(30, LATER, pending=True), False),
        (GracefulStrategy(), terminating(30), 40, GracePeriod(30, LATER, pending=True), False),
        (GracefulStrategy(), terminating(30), 10, GracePeriod(10, SOON), False),
        (GracefulStrategy(), terminating(30), 0, GracePeriod(0, NOW), True),
        (GracefulStrategy(), terminating(0), None, None, True),
        (GracefulStrategy(), terminating(None), 5, None, True),
    ],
)
def test_the_grace_period_of_a_deletion(
    strategy: Strategy, obj: Object, seconds: int | None, grace: GracePeriod | None, goes_now: bool
) -> None:
    going = decide(obj, DeleteOptions(grace_period_seconds=seconds), strategy, NOW)
    assert (going.grace, going.is_removable) == (grace, goes_now)
    assert going.is_pending == (grace is not None and grace.pending)


@pytest.mark.parametrize(
    ("finalizers", "options", "result"),
    [
        ([], DeleteOptions(), []),
        ([], DeleteOptions(propagation_policy="Background"), []),
        ([], DeleteOptions(propagation_policy="Foreground"), ["foregroundDeletion"]),
        ([], DeleteOptions(propagation_policy="Orphan"), ["orphan"]),
        ([], DeleteOptions(orphan_dependents=True), ["orphan"]),
        ([], DeleteOptions(orphan_dependents=False), []),
        (["a/b"], DeleteOptions(propagation_policy="Foreground"), ["a/b", "foregroundDeletion"]),
        (["orphan", "a/b"], DeleteOptions(), ["orphan", "a/b"]),
        (["foregroundDeletion"], DeleteOptions(), ["foregroundDeletion"]),
        (["orphan", "a/b"], DeleteOptions(propagation_policy="Background"), ["a/b"]),
        (["orphan", "a/b"], DeleteOptions(propagation_policy="Foreground"), ["a/b", "foregroundDeletion"]),
        (["orphan"], DeleteOptions(orphan_dependents=False), []),
    ],
)
def test_the_options_or_the_object_determine_the_propagation(
    finalizers: list[str], options: DeleteOptions, result: list[str]
) -> None:
    assert list(decide(pod(finalizers=finalizers), options, Strategy(), NOW).finalizers) == result


def test_a_kind_without_dependents_keeps_only_existing_finalizers() -> None:
    options = DeleteOptions(propagation_policy="Foreground")
    assert decide(pod(), options, UncollectedStrategy(), NOW).is_removable
    held = decide(pod(finalizers=["a/b", "orphan"]), options, UncollectedStrategy(), NOW)
    assert (held.is_removable, list(held.finalizers)) == (False, ["a/b"])


@pytest.mark.parametrize(
    ("finalizers", "options", "result"),
    [
        ([], DeleteOptions(), ["orphan"]),
        (["foregroundDeletion"], DeleteOptions(), ["foregroundDeletion"]),
        ([], DeleteOptions(propagation_policy="Background"), []),
        ([], DeleteOptions(orphan_dependents=False), []),
    ],
)
def test_some_kinds_orphan_by_default(finalizers: list[str], options: DeleteOptions, result: list[str]) -> None:
    assert list(decide(pod(finalizers=finalizers), options, Orphaning(), NOW).finalizers) == result


@pytest.mark.parametrize(
    ("going", "before", "after"),
    [
        (DeletionDecision(None, (), True), {}, {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}),
        (
            DeletionDecision(None, ["a/b"], True),
            {"generation": 3},
            {
                "generation": 4,
                "finalizers": ["a/b"],
                "deletionTimestamp": NOW,
                "deletionGracePeriodSeconds": 0,
            },
        ),
        (
            DeletionDecision(None, ["a/b"], True),
            {"generation": 3, "deletionTimestamp": LATER, "finalizers": ["a/b"]},
            {
                "generation": 3,
                "finalizers": ["a/b"],
                "deletionTimestamp": NOW,
                "deletionGracePeriodSeconds": 0,
            },
        ),
        (
            DeletionDecision(GracePeriod(10, SOON), (), False),
            {"finalizers": ["orphan"]},
            {"deletionTimestamp": SOON, "deletionGracePeriodSeconds": 10},
        ),
    ],
)
def test_fields_written_to_a_terminating_object(
    going: DeletionDecision, before: dict[str, Any], after: dict[str, Any]
) -> None:
    metadata = dict(before)
    going.mark(metadata, NOW)
    assert metadata == after


@pytest.mark.parametrize(
    ("options", "resource", "message"),
    [
        (
            DeleteOptions(uid="x"),
            PODS,
            'Operation cannot be fulfilled on Pod "a": the UID in the precondition (x) does not match the UID in '
            "record (u). The object might have been deleted and then recreated",
        ),
        (
            DeleteOptions(uid="u", resource_version="6"),
            PODS,
            'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (6) does not match the '
            "ResourceVersion in record (7). The object might have been modified",
        ),
        (
            DeleteOptions(uid="x"),
            NAMESPACES,
            'Operation cannot be fulfilled on namespaces "a": Precondition failed: UID in precondition: x, '
            "UID in object meta: u",
        ),
    ],
)
def test_unmet_preconditions_are_conflicts(options: DeleteOptions, resource: Any, message: str) -> None:
    with pytest.raises(Conflict) as refused:
        check_preconditions(pod(), options, resource, "Pod", own_words=resource == NAMESPACES)
    assert str(refused.value) == message
    details = refused.value.details
    assert details is not None
    assert details.name == "a"


def test_met_preconditions_are_no_conflicts() -> None:
    check_preconditions(pod(), DeleteOptions(uid="u", resource_version="7"), PODS, "Pod")
