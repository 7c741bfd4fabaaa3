"""Defines, as tests, the contract of an event log about failures of reconciles.

The log keeps one record for each failure, up to a maximum number of records.
"""

from __future__ import annotations

from msgspec import structs

from ctrlmgr.eventlog import Failure
from ctrlmgr.eventlog.event import FAILURES_KEPT
from ctrlmgr.testing.eventlog_contract import VerifiableLog


class FailureContract:
    """The tests about failures that every event log must pass; they need the fixtures of `EventLogContract`."""

    def test_a_failure_is_one_record_that_is_brought_up_to_date(self, log: VerifiableLog) -> None:
        first = Failure(
            controller="shop", key="default/corner", since=5, last_at=5, attempts=1, kind="Shop", error="KeyError: 'x'"
        )
        other = structs.replace(first, key="default/other", since=6, last_at=6, traceback="Traceback …")
        retried = structs.replace(first, last_at=9, attempts=7, error="KeyError: 'y'", next_retry_at=11)
        ended = structs.replace(retried, ended_at=12, next_retry_at=None)
        again = structs.replace(first, since=20, last_at=20)
        for each in (first, other, retried):
            log.record_failure(each)
        log.flush()
        assert log.failures() == [retried, other]
        log.record_failure(ended)
        log.record_failure(again)
        log.flush()
        assert log.failures() == [again, ended, other]
        assert log.head().revision == 0  # A failure is not stored as an event.

    def test_the_newest_failures_are_kept(self, log: VerifiableLog) -> None:
        for number in range(FAILURES_KEPT + 3):
            log.record_failure(
                Failure(controller="c", key=f"k{number}", since=number, last_at=number, attempts=1, kind="", error="E")
            )
        log.flush()
        kept = log.failures()
        assert len(kept) == FAILURES_KEPT
        assert (kept[0].key, kept[-1].key) == (f"k{FAILURES_KEPT + 2}", "k3")
