"""Tests of the pages in which the log is sent to copies: which events the client's permissions allow, and the sizes of
pages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Verdict
from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog import Author, Cause, EventType, Outcome, Proposal, open_log
from ctrlmgr.testing import FakeClock
from ctrlmgr.ui import log_pages
from ctrlmgr.ui.log_pages import LogPages
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import HistoryUnavailable, Reader
from ctrlmgr.ui.visibility import Visibility

VALUE = "aHVzaC1odXNo"
Right = Callable[[Attributes], bool]


def made(kind: str, name: str, namespace: str = "shop", **more: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "annotations": {}}
    if kind == "Secret":
        metadata["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": VALUE}
    return Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": metadata, **more})


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[LogPages]:
    url = f"sqlite:///{tmp_path}/log.db"
    log = open_log(url, clock=FakeClock(), random=Random(1), migrate=True)
    cause = Cause(7, "minder", "shop/hush", 1, 1, (2,))
    for obj, by in (
        (made("Pod", "web"), None),
        (made("Secret", "hush", data={"password": VALUE}, stringData={"again": VALUE}), None),
        (made("Pod", "ledger", "payments"), cause),
    ):
        log.append([Proposal(EventType.ADDED, obj, 0)], author=Author("alice"), cause=by)
    log.finish(7, Outcome(1, "error", "hush is odd"))
    log.close()
    reader = Reader(url)
    yield LogPages(reader)
    reader.close()


def page_for(pages: LogPages, right: Right, **query: object) -> bytes:
    def decide(user: User, attributes: Attributes) -> Verdict:
        return ALLOWED if right(attributes) else NO_OPINION

    visibility = Visibility(User("ann"), decide)
    return pages.page(Parameters({name: [str(value)] for name, value in query.items()}, visibility))


def rows(page: bytes, what: str) -> list[dict[str, Any]]:
    return [line[what] for line in map(json.loads, page.splitlines()) if what in line]


def everything(page_for: Attributes) -> bool:
    return True


def lists(*resources: str, verb: str = "list", namespace: str = "") -> Right:
    return lambda page_for: (
        page_for.verb == verb
        and page_for.resource in resources
        and namespace in ("", page_for.namespace)
        and not page_for.name
    )


@pytest.mark.parametrize(
    ("right", "seen", "tells_values"),
    [
        pytest.param(everything, [1, 2, 3], True, id="an administrator"),
        pytest.param(lambda page_for: page_for.verb == "list", [1, 2, 3], False, id="list of everything"),
        pytest.param(lists("pods"), [1, 3], False, id="list of pods"),
        pytest.param(lists("pods", namespace="shop"), [1], False, id="list of pods of a namespace"),
        pytest.param(lists("secrets"), [2], False, id="list of secrets"),
        pytest.param(lists("secrets", verb="get"), [2], True, id="get of secrets"),
        pytest.param(lists("secrets", verb="get", namespace="payments"), [], False, id="get of other secrets"),
        pytest.param(lambda page_for: page_for.name == "web", [], False, id="a right to one name"),
        pytest.param(lambda page_for: False, [], False, id="nothing"),
    ],
)
def test_a_user_receives_events_of_listable_resources(
    pages: LogPages, right: Right, seen: list[int], tells_values: bool
) -> None:
    page = page_for(pages, right)
    assert [row["revision"] for row in rows(page, "event")] == seen
    [place] = rows(page, "log")
    assert (place["hidden"], place["next"], place["head"]) == (3 - len(seen), 3, 3)
    assert (VALUE.encode() in page) is tells_values
    assert (b"hush" in page) is (2 in seen)
    assert any(row["hash"] for row in rows(page, "event")) is (right is everything)


def test_events_of_unlistable_resources_are_not_counted(pages: LogPages) -> None:
    page = page_for(pages, lists("pods"), resource="secrets")
    assert rows(page, "log")[0]["hidden"] == 0
    assert rows(page, "event") == []


def test_changed_rights_are_distinguished(pages: LogPages) -> None:
    given = (
        everything,
        lists("pods"),
        lists("pods", namespace="shop"),
        lists("secrets"),
        lists("secrets", verb="get"),
        lists("pods", "secrets"),
    )
    told = [rows(page_for(pages, right), "log")[0]["rights"] for right in given]
    assert len(set(told)) == len(given)
    assert told == [rows(page_for(pages, right, after=3), "log")[0]["rights"] for right in given]


def test_an_end_is_sent_again_to_clients_with_rights_to_its_writes(pages: LogPages) -> None:
    for right, ids in ((everything, [7]), (lists("pods"), [7]), (lists("secrets"), [])):
        again = rows(page_for(pages, right, after=3, reconciles="7"), "reconcile")
        assert [row["id"] for row in again] == ids
    with pytest.raises(BadRequest, match="must be a list of at most 50 numbers"):
        page_for(pages, everything, reconciles="7 OR 1")


@pytest.mark.parametrize("limit", ["_MOST", "_ROOM"])
def test_pages_are_bounded_and_consecutive(pages: LogPages, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(log_pages, limit, 1)
    after, found = 0, []
    while after < 3:
        page = page_for(pages, everything, after=after)
        assert len(rows(page, "event")) == 1
        found += rows(page, "event")
        after = rows(page, "log")[0]["next"]
    assert [row["revision"] for row in found] == [1, 2, 3]


def test_one_resource_is_read_up_to_a_revision(pages: LogPages) -> None:
    page = page_for(pages, everything, resource="pods", until=2)
    assert [row["revision"] for row in rows(page, "event")] == [1]
    assert rows(page, "log")[0]["next"] == 2


def test_a_log_in_memory_has_no_history() -> None:
    with pytest.raises(HistoryUnavailable, match="in memory"):
        page_for(LogPages(Reader("memory:")), everything)


OLD, NEW = "b2xkLW9sZA==", "bmV3LW5ldw=="


def again(pages: LogPages, url: str) -> None:
    """Delete the namespace `shop` together with its Secret, and create both again."""
    log = open_log(url, clock=FakeClock(), random=Random(2))
    space = made("Namespace", "shop", "")
    for kind, obj, previous in (
        (EventType.ADDED, space, 0),
        (EventType.ADDED, made("Secret", "taken", data={"password": OLD}), 0),
        (EventType.DELETED, made("Secret", "taken", data={"password": OLD}), 5),
        (EventType.DELETED, space, 4),
        (EventType.ADDED, space, 0),
        (EventType.ADDED, made("Secret", "taken", data={"password": NEW}), 0),
    ):
        log.append([Proposal(kind, obj, previous)], author=Author("alice"))
    log.close()


def test_a_recreated_namespace_shows_nothing_of_its_predecessor(pages: LogPages, tmp_path: Path) -> None:
    tenant = lists("secrets", "pods", "namespaces", verb="get", namespace="shop")
    before = rows(page_for(pages, tenant), "log")[0]["rights"]
    again(pages, f"sqlite:///{tmp_path}/log.db")
    page = page_for(pages, tenant)
    assert [row["revision"] for row in rows(page, "event")] == [8, 9]
    assert (OLD.encode() in page, NEW.encode() in page) == (False, True)
    assert rows(page, "reconcile") == []
    assert rows(page, "log")[0]["rights"] != before
    assert all(value.encode() in page_for(pages, everything) for value in (OLD, NEW))


def test_a_cluster_wide_list_shows_no_values_of_a_deleted_object(pages: LogPages, tmp_path: Path) -> None:
    again(pages, f"sqlite:///{tmp_path}/log.db")
    reads = lists("secrets", verb="get", namespace="shop")
    page = page_for(pages, lambda given: lists("secrets")(given) or reads(given))
    assert [row["revision"] for row in rows(page, "event")] == [2, 5, 6, 9]
    assert (OLD.encode() in page, NEW.encode() in page) == (False, True)
