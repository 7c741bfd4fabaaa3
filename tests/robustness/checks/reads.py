"""Checks of reads against the log: a response is as new as requested, and its content is correct."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from tests.robustness.checks.evidence import Evidence
from tests.robustness.histories.history import SECOND, Item, Page, Read
from tests.robustness.histories.truth import item, path_of

_LONGEST_WAIT = 6 * SECOND
"""Seconds within which the server must refuse a read of a future revision; Kubernetes waits for three seconds."""


def _told(read: Read) -> str:
    what = "get" if read.get else f"list (limit {read.limit})"
    return f"{what} of {read.resource} {read.selection.query} at '{read.version}' {read.match} by {read.server}"


def _answered(evidence: Evidence) -> Iterator[tuple[Read, Page]]:
    for read in evidence.history.reads:
        for page in read.pages:
            if page.code == 200:
                yield read, page


def are_fresh(evidence: Evidence) -> Iterator[str]:
    """A read of the newest state returns every write whose response a client had received before the read, on any
    server.
    """
    for read in evidence.history.reads:
        if not read.is_newest or not read.pages:
            continue
        page = read.pages[0]
        known = evidence.known_before(page.called)
        if read.get:
            if page.code in (200, 404) and not any(_shows(page, state) for state in _states(evidence, read, page)):
                yield f"{_told(read)} showed {page.items}, though revision {known} was known"
        elif page.code == 200 and page.revision < known:
            yield f"{_told(read)} is of revision {page.revision}, though {known} was known"


def _states(evidence: Evidence, read: Read, page: Page) -> Iterator[Item | None]:
    """Yield the possible states of an object during a read."""
    truth, place = evidence.truth, (read.selection.namespace, read.selection.name)
    first, last = evidence.known_before(page.called), truth.last_before(page.returned)
    there = truth.at(read.resource, place, first)
    yield item(there) if there is not None else None
    for change in truth.history_of(read.resource, place):
        if first < change.revision <= last:
            yield item(change.after) if change.after is not None else None


def _shows(page: Page, state: Item | None) -> bool:
    return page.items == ([] if state is None else [state])


def are_not_of_the_future(evidence: Evidence) -> Iterator[str]:
    """No client reads a write before the write was requested."""
    for read, page in _answered(evidence):
        last = evidence.truth.last_before(page.returned)
        if page.revision > last:
            yield f"{_told(read)} is of revision {page.revision}, when {last} was the newest there could be"


def show_one_state(evidence: Evidence) -> Iterator[str]:
    """The pages of a list together are the state at the list's revision; if pages are missing at the end, the pages are
    the beginning of that state.
    """
    for read in evidence.history.reads:
        pages = [page for page in read.pages if page.code == 200]
        if read.get or not pages:
            continue
        if len({page.revision for page in pages}) > 1:
            yield f"{_told(read)} has pages of revisions {[page.revision for page in pages]}"
            continue
        seen = [each for page in pages for each in page.items]
        state = evidence.truth.state(read.resource, read.selection, pages[0].revision)
        state = [each for each in state if path_of(each) > read.after]
        if not read.whole or pages[-1] is not read.pages[-1]:
            state = state[: len(seen)]
        if seen != state:
            at, (shown, there) = next(each for each in enumerate(zip_longest(seen, state)) if len(set(each[1])) > 1)
            what = f"of revision {pages[0].revision}, shows {shown} as number {at} of {len(seen)}"
            yield f"{_told(read)}, {what}, not {there}; after '{read.after}', {[page.code for page in read.pages]}"


def are_of_the_revision_asked_for(evidence: Evidence) -> Iterator[str]:
    """A read with `Exact` returns the requested revision, and a read with `NotOlderThan` at least the requested
    revision; a GET returns the object's last change.
    """
    for read in evidence.history.reads:
        if read.get or read.version in ("", "0"):
            continue
        asked = int(read.version)
        exact = read.match == "Exact" or (not read.match and read.limit > 0)
        for page in read.pages:
            if page.code == 200 and (page.revision != asked if exact else page.revision < asked):
                yield f"{_told(read)} is of revision {page.revision}"


def fail_with_reason(evidence: Evidence) -> Iterator[str]:
    """The server responds with 410 only for compacted revisions, and with 504 soon and only for future revisions;
    without a fault, other errors do not occur.
    """
    for read in evidence.history.reads:
        for page in read.pages:
            if not _has_reason(evidence, read, page):
                waited = (page.returned - page.called) / SECOND
                yield f"{_told(read)} was answered {page.code} after {waited:.1f} s ({page})"


def _has_reason(evidence: Evidence, read: Read, page: Page) -> bool:
    if page.code == 200 or (page.code == 404 and read.get):
        return True
    if evidence.faults(read.server, page.called, page.returned):
        return True
    asked, first = int(read.version or "0"), read.pages[0]
    if page.code == 410:
        return (first.revision if first.code == 200 else asked) < evidence.floor_at(page.returned)
    in_time = page.returned - page.called < _LONGEST_WAIT
    # Every server soon returns writes that a client received long before.
    return page.code == 504 and in_time and asked > evidence.known_before(page.called - SECOND)
