"""The other end of a cluster: its errors, how fast it is asked, and how one of its resources is followed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from random import Random
from typing import Any

import pytest

from ctrlmgr.api import status
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    Invalid,
    NamespaceTerminating,
    NotFound,
    ServiceUnavailable,
    StatusCause,
    StatusDetails,
    TooManyRequests,
)
from ctrlmgr.framework.remote.api import Api, error_of, path_of
from ctrlmgr.framework.remote.log import RemoteLog
from ctrlmgr.framework.remote.stream import Changed, Listed, Message, Progressed, Stream
from ctrlmgr.framework.remote.throttle import Throttle
from ctrlmgr.recording.capture.cluster import Page, Served
from ctrlmgr.settings.kubeconfig import Access
from ctrlmgr.testing import FakeClock

SHOPS = Resource("example.com", "shops")
TERMINATING = StatusDetails(causes=(StatusCause("NamespaceTerminating", "it goes", "metadata.namespace"),))


@pytest.mark.parametrize(
    "error",
    [
        AlreadyExists("there"),
        Conflict("changed"),
        Invalid(
            "wrong", details=StatusDetails(name="a", causes=(StatusCause("FieldValueRequired", "Required", "spec"),))
        ),
        NotFound("gone"),
        NamespaceTerminating("going", details=TERMINATING),
        TooManyRequests("later"),
        ServiceUnavailable("away"),
        Expired(1, 2),
    ],
)
def test_a_refusal_is_the_error_that_it_was_on_the_other_side(error: ApiError) -> None:
    found = error_of(error.code, json.dumps(status.failure(error), default=str).encode(), "it")
    assert isinstance(found, type(error))
    assert (found.code, str(found), found.lost_race, found.retryable) == (
        error.code,
        str(error),
        error.lost_race,
        error.retryable,
    )
    if error.details is not None:
        assert found.details is not None
        assert found.details.causes == error.details.causes


@pytest.mark.parametrize(
    ("code", "kind"), [(404, NotFound), (409, Conflict), (429, TooManyRequests), (502, ServiceUnavailable)]
)
def test_an_answer_without_words_is_known_by_its_code(code: int, kind: type[ApiError]) -> None:
    assert isinstance(error_of(code, b"<html>", "/api"), kind)


def test_paths() -> None:
    assert path_of("v1", "pods", "default", "a", "status") == "/api/v1/namespaces/default/pods/a/status"
    assert path_of("example.com/v1", "shops", "") == "/apis/example.com/v1/shops"


def test_requests_keep_to_a_rate() -> None:
    clock = FakeClock()
    throttle = Throttle(10, 3, clock=clock)
    assert [throttle.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.step(10)
    assert [throttle.reserve() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
    assert [Throttle(0, 1, clock=clock).reserve() for _ in range(3)] == [0, 0, 0]


def shop(name: str, revision: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(revision)}
    return {"kind": "Shop", "apiVersion": "example.com/v1", "metadata": metadata}


def line(kind: str, obj: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def bookmark(revision: int, *, ends_list: bool = False) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if ends_list else {}
    return line(
        "BOOKMARK", {"kind": "Shop", "apiVersion": "v1", "metadata": {"resourceVersion": str(revision), **annotations}}
    )


class Impatient(threading.Event):
    """An event for which no test waits."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


class Scripted(Api):
    """A server that says what a test has written down: a list of lines, or an error, for each watch."""

    def __init__(self, *watches: list[bytes] | ApiError, found: bool = True) -> None:
        super().__init__(Access("http://nowhere", "", None, "", {}), Throttle(0, 1, clock=FakeClock()), program="test")
        self.watches = [*watches]
        self.asked: list[Mapping[str, str]] = []
        self.lists = 0
        self.is_found = found
        self.stop = Impatient()

    def find(self, resource: Resource) -> Served:
        if not self.is_found:
            self.is_found = True
            raise NotFound("the server does not serve it")
        return Served(resource, "/apis/example.com/v1", True)

    def list(self, served: Served, namespace: str) -> Page:
        self.lists += 1
        return Page(40, [Object.from_dict(shop("listed", 39))])

    def lines(self, served: Served, namespace: str, query: Mapping[str, str], seconds: int) -> Iterator[bytes]:
        self.asked.append(query)
        if not self.watches:
            self.stop.set()
            return
        said = self.watches.pop(0)
        if isinstance(said, ApiError):
            raise said
        yield from said


def follow(api: Scripted, only: Key | None = None) -> list[Message]:
    """Follow until the script is over, and return what was told."""
    told: SimpleQueue[Message] = SimpleQueue()
    stream = Stream(api, SHOPS, told, clock=FakeClock(), random=Random(1), only=only)
    stream.run(api.stop)
    return [told.get() for _ in range(told.qsize())]


def shown(message: Message) -> tuple[Any, ...]:
    match message:
        case Listed(_, revision, objects):
            return ("listed", revision, [each.name for each in objects])
        case Changed(_, type_, obj):
            return (type_.name, obj.revision, obj.name)
        case Progressed(_, revision):
            return ("progressed", revision)


def test_a_list_is_streamed_and_then_watched_on() -> None:
    first = [line("ADDED", shop("a", 3)), line("ADDED", shop("b", 5)), bookmark(7, ends_list=True)]
    api = Scripted([*first, line("MODIFIED", shop("a", 8)), bookmark(9)], [line("DELETED", shop("b", 11))])
    assert [shown(each) for each in follow(api)] == [
        ("listed", 7, ["a", "b"]),
        ("MODIFIED", 8, "a"),
        ("progressed", 9),
        ("DELETED", 11, "b"),
    ]
    assert api.lists == 0
    assert api.asked[0]["sendInitialEvents"] == "true"
    assert api.asked[1] == {"resourceVersion": "9"}


def test_a_server_that_streams_no_lists_is_asked_for_pages() -> None:
    api = Scripted(Invalid("sendInitialEvents is forbidden"), [line("ADDED", shop("new", 41))])
    assert [shown(each) for each in follow(api)] == [("listed", 40, ["listed"]), ("ADDED", 41, "new")]
    assert api.asked[1] == {"resourceVersion": "40"}


def test_what_the_server_has_forgotten_is_listed_again() -> None:
    gone = line("ERROR", status.failure(Expired(9, 20)))
    again = [line("ADDED", shop("b", 21)), bookmark(22, ends_list=True)]
    api = Scripted([bookmark(7, ends_list=True), gone], again, Expired(22, 30), [bookmark(31, ends_list=True)])
    assert [shown(each) for each in follow(api)] == [("listed", 7, []), ("listed", 22, ["b"]), ("listed", 31, [])]


def test_a_broken_watch_goes_on_where_it_was_and_half_a_list_is_none() -> None:
    half = [line("ADDED", shop("a", 3))]
    whole = [*half, bookmark(7, ends_list=True)]
    api = Scripted(half, whole, ServiceUnavailable("the line broke"), [b"no json"], [line("ADDED", shop("c", 8))])
    assert [shown(each) for each in follow(api)] == [("listed", 7, ["a"]), ("ADDED", 8, "c")]
    assert [each.get("resourceVersion") for each in api.asked] == [None, None, "7", "7", "7", "8"]


def test_a_kind_that_is_not_served_has_no_objects_until_it_is() -> None:
    api = Scripted([line("ADDED", shop("a", 3)), bookmark(7, ends_list=True)], found=False)
    assert [shown(each) for each in follow(api)] == [("listed", 0, []), ("listed", 7, ["a"])]


def test_one_object_alone_can_be_followed() -> None:
    api = Scripted([bookmark(7, ends_list=True)])
    follow(api, only=Key("default", "mine"))
    assert api.asked[0]["fieldSelector"] == "metadata.name=mine"


def test_a_cache_is_behind_until_it_shows_what_was_written() -> None:
    log = RemoteLog(Scripted(), clock=FakeClock())
    log.follow(SHOPS)
    assert (log.peek(), log.shown()) == (0, 0)
    log.wrote(Object.from_dict(shop("a", 10)).at(10))
    log.wrote(Object.from_dict(shop("a", 12)).at(12))
    assert (log.peek(), log.shown()) == (12, 9)
    log.has_shown(Object.from_dict(shop("a", 10)).resource, 10)
    assert log.shown() == 11
    log.has_shown(SHOPS, 15)
    assert log.shown() == 12
