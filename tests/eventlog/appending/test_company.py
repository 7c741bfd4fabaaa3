"""Whether a reconcile's append waits for a request's: by what has come of it before."""

from __future__ import annotations

import pytest

from ctrlmgr.eventlog.appending.company import Company


def busy(company: Company, until: float = 0.003, every: float = 0.001) -> Company:
    for number in range(4):
        company.request(until - (3 - number) * every)
    return company


def test_it_waits_where_requests_come_often() -> None:
    assert busy(Company()).may_come(0.004)


@pytest.mark.parametrize(("every", "now"), [(0.01, 0.004), (0.001, 0.1)], ids=["seldom", "no more"])
def test_it_does_not_wait_where_they_come(every: float, now: float) -> None:
    assert not busy(Company(), every=every).may_come(now)


def test_it_does_not_wait_before_any_have_come() -> None:
    assert not Company().may_come(0.0)


@pytest.mark.parametrize(("commit", "patience"), [(0.0001, 0.003), (0.004, 0.012), (1.0, 0.05)])
def test_it_waits_for_some_commits(commit: float, patience: float) -> None:
    company = Company()
    company.took(commit)
    assert company.patience == pytest.approx(patience)


def test_slow_commits_make_requests_often_that_come_more_seldom() -> None:
    company = busy(Company(), every=0.008)
    assert not company.may_come(0.004)
    company.took(0.004)
    assert company.may_come(0.004)


def hurried(company: Company) -> int:
    """Return how many do not wait until one does."""
    return next(number for number in range(10_000) if company.may_come(0.004))


def test_each_in_vain_lets_four_times_as_many_go_at_once() -> None:
    company, found = busy(Company()), []
    for _ in range(7):
        company.missed()
        found.append(hurried(company))
    assert found == [16, 64, 256, 1024, 4096, 4096, 4096]


def test_those_that_find_company_make_up_for_it() -> None:
    company = busy(Company())
    company.missed()
    hurried(company)
    for _ in range(5):
        company.found()
    company.missed()
    assert hurried(company) == 16
