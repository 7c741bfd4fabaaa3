"""Checks: pure functions that read a history and yield violations.

`CHECKS` maps the name of each guarantee to its check; for a correct history, no check yields a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from tests.robustness.checks import informers, reads, streams, watches, writes
from tests.robustness.checks.evidence import Evidence
from tests.robustness.histories.history import History

CHECKS: Mapping[str, Callable[[Evidence], Iterator[str]]] = {
    "L1 acknowledged writes are in the log": writes.acknowledged_are_logged,
    "L2 refused writes are not in the log": writes.refused_are_not_logged,
    "L2 refusals are true": writes.refusals_are_true,
    "L5 the log's order is that of time": writes.order_is_that_of_time,
    "L5 preconditions hold": writes.preconditions_hold,
    "L6 no revision is missing": writes.revisions_have_no_gap,
    "G4 answers are as expected": writes.answers_are_expected,
    "G4 servers expect what happens": writes.nothing_unexpected,
    "R1 reads are fresh": reads.are_fresh,
    "R2 reads are not of the future": reads.are_not_of_the_future,
    "R3 reads show one state": reads.show_one_state,
    "R4 reads are of the revision asked for": reads.are_of_the_revision_asked_for,
    "R5 reads fail with reason": reads.fail_with_reason,
    "W1 ordered": watches.ordered,
    "W2 unique": watches.unique,
    "W3 reliable": watches.reliable,
    "W5 resumable": watches.resumable,
    "W6 bookmarkable": watches.bookmarkable,
    "W7 filter": watches.filtered,
    "W8 type and object": watches.true_to_type,
    "W10 what begins in the future waits for it": watches.nothing_before_its_start,
    "W11 initial events are a state": watches.initial_state,
    "W9 compaction is loud": streams.errors_have_reason,
    "W13 no end without a cause": streams.ends_have_reason,
    "W13 what happens is told in time": streams.prompt,
    "W11 list and watch are complete": informers.complete,
    "W13 everybody gets to the end": informers.hear_the_last,
}


def check(history: History, most: int = 5) -> list[str]:
    """Return the violations that all checks find, at most `most` for each check; the list is empty for a correct
    history.
    """
    evidence = Evidence(history)
    return [f"{name}: {said}" for name, judge in CHECKS.items() for said in islice(judge(evidence), most)]
