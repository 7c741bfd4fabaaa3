"""Tests of which past revisions can be served, and of the state that is served."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from ctrlmgr.api.resource import LEASES, PODS
from ctrlmgr.clock import parse_time
from ctrlmgr.errors import BadRequest, Expired
from ctrlmgr.eventlog import migrate_log, open_log
from ctrlmgr.inspection.database import open_database
from ctrlmgr.serve.historical_server import Moment, find_moment
from ctrlmgr.testing import FakeClock
from tests.inspection import story

NOW = parse_time("2026-01-02T04:00:00Z")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return story.write(f"sqlite:///{tmp_path}/story.db")


def found(url: str, text: str) -> Moment:
    with open_database(url) as database:
        return find_moment(database, text, now=NOW)


def test_a_past_revision_is_given_as_a_revision_or_a_time(url: str) -> None:
    moment = found(url, "12")
    assert (moment.revision, moment.lost, moment.known) == (12, [], None)
    assert found(url, "2026-01-02T03:04:14.000001Z") == moment
    assert found(url, "head") == found(url, "1m")


def test_separately_compacted_resources_are_omitted(url: str) -> None:
    with closing(open_log(url, clock=FakeClock(), random=random.Random(1))) as log:
        log.compact(14, resource=LEASES)
    moment = found(url, "12")
    assert moment.lost == [str(LEASES)]
    assert moment.known is not None
    assert PODS in moment.known
    assert LEASES not in moment.known
    assert found(url, "14").known is None


def test_a_compacted_revision_is_refused(url: str) -> None:
    with closing(open_log(url, clock=FakeClock(), random=random.Random(1))) as log:
        log.compact(13)
    with pytest.raises(Expired):
        found(url, "12")
    assert found(url, "13").lost == []


def test_an_empty_log_has_no_past(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    migrate_log(url, clock=FakeClock(), random=random.Random(1))
    with pytest.raises(BadRequest, match="the log is empty"):
        found(url, "head")
