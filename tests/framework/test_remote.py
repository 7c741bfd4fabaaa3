"""Tests of the client for another API server: its errors, its rate limit, and how it lists and watches."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from random import Random
from typing import Any

import pytest

from ctrlmgr.api import status_responses
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NamespaceTerminating,
    NotFound,
    RequestTimeout,
    ServiceUnavailable,
    StatusCause,
    StatusDetails,
    TooManyRequests,
)
from ctrlmgr.framework.remote.reflector import Changed, Listed, Message, Progress, Stream
from ctrlmgr.framework.remote.remote_api import Api, error_of, path_of
from ctrlmgr.framework.remote.throttle import Throttle
from ctrlmgr.recording.capture.cluster_client import Page, Served
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
def test_a_refusal_has_the_error_of_the_server(error: ApiError) -> None:
    found = error_of(error.code, json.dumps(status_responses.failure(error), default=str).encode(), "it")
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
def test_a_response_without_a_status_is_classified_by_its_code(code: int, kind: type[ApiError]) -> None:
    assert isinstance(error_of(code, b"<html>", "/api"), kind)


def test_paths() -> None:
    assert path_of("v1", "pods", "default", "a", "status") == "/api/v1/namespaces/default/pods/a/status"
    assert path_of("example.com/v1", "shops", "") == "/apis/example.com/v1/shops"


def test_requests_respect_the_rate_limit() -> None:
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


class NeverStopped(threading.Event):
    """A stop event that is never set, so that tests do not wait."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


class ScriptedApi(Api):
    """A server that responds to each watch with a list of lines or an error, as a test specifies."""

    def __init__(self, *watches: list[bytes] | ApiError, found: bool = True) -> None:
        super().__init__(Access("http://nowhere", "", None, "", {}), Throttle(0, 1, clock=FakeClock()), program="test")
        self.watches = [*watches]
        self.asked: list[Mapping[str, str]] = []
        self.seconds: list[int] = []
        self.lists = 0
        self.is_found = found
        self.stop = NeverStopped()

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
        self.seconds.append(seconds)
        if not self.watches:
            self.stop.set()
            return
        said = self.watches.pop(0)
        if isinstance(said, ApiError):
            raise said
        yield from said


def follow(api: ScriptedApi, only: Key | None = None) -> list[Message]:
    """Follow a resource until the end of the server's script, and return the received changes."""
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
        case Progress(_, revision):
            return ("progressed", revision)


def test_a_list_is_streamed_and_then_watched() -> None:
    first = [line("ADDED", shop("a", 3)), line("ADDED", shop("b", 5)), bookmark(7, ends_list=True)]
    api = ScriptedApi([*first, line("MODIFIED", shop("a", 8)), bookmark(9)], [line("DELETED", shop("b", 11))])
    assert [shown(each) for each in follow(api)] == [
        ("listed", 7, ["a", "b"]),
        ("MODIFIED", 8, "a"),
        ("progressed", 9),
        ("DELETED", 11, "b"),
    ]
    assert api.lists == 0
    assert api.asked[0]["sendInitialEvents"] == "true"
    assert api.asked[1] == {"resourceVersion": "9"}


REFUSALS = [
    Invalid("sendInitialEvents is forbidden"),
    BadRequest("what is that"),
    InternalError("etcd does not say how far it is"),
    RequestTimeout("Too large resource version"),
    ServiceUnavailable("the line broke"),
    Expired(1, 2),
    Forbidden("not like this"),
    MethodNotAllowed("no"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda error: str(error.code))
@pytest.mark.parametrize("told", [False, True], ids=["refused", "told in the stream"])
def test_without_streaming_pages_are_requested_at_once(refusal: ApiError, told: bool) -> None:
    first = [line("ADDED", shop("a", 3)), line("ERROR", status_responses.failure(refusal))] if told else refusal
    api = ScriptedApi(first, [line("ADDED", shop("new", 41))], Expired(40, 50))
    assert [shown(each) for each in follow(api)] == [
        ("listed", 40, ["listed"]),
        ("ADDED", 41, "new"),
        ("listed", 40, ["listed"]),  # the next list is not requested as a stream
    ]
    assert [each.get("resourceVersion") for each in api.asked] == [None, "40", "41", "40"]


def test_an_incomplete_streamed_list_is_discarded() -> None:
    api = ScriptedApi([line("ADDED", shop("a", 3)), bookmark(4)], [line("ADDED", shop("new", 41))])
    assert [shown(each) for each in follow(api)] == [("listed", 40, ["listed"]), ("ADDED", 41, "new")]
    assert api.seconds[0] <= 60  # the client does not wait longer for a server that never ends the initial list
    assert api.seconds[1] >= 300


def test_a_busy_server_is_requested_again_for_a_stream() -> None:
    api = ScriptedApi(TooManyRequests("later"), [bookmark(7, ends_list=True)])
    assert [shown(each) for each in follow(api)] == [("listed", 7, [])]
    assert api.lists == 0


@pytest.mark.parametrize("refusal", [ServiceUnavailable("away"), TooManyRequests("later"), InternalError("oh")])
@pytest.mark.parametrize("told", [False, True], ids=["refused", "told in the stream"])
def test_after_a_temporary_failure_a_watch_resumes(refusal: ApiError, told: bool) -> None:
    first = [line("ERROR", status_responses.failure(refusal))] if told else refusal
    api = ScriptedApi([bookmark(7, ends_list=True)], first, [line("ADDED", shop("a", 8))])
    assert [shown(each) for each in follow(api)] == [("listed", 7, []), ("ADDED", 8, "a")]
    assert [each.get("resourceVersion") for each in api.asked] == [None, "7", "7", "8"]


@pytest.mark.parametrize("refusal", [Expired(1, 2), RequestTimeout("Too large resource version: 7"), BadRequest("7?")])
@pytest.mark.parametrize("told", [False, True], ids=["refused", "told in the stream"])
def test_an_unknown_revision_causes_a_new_list(refusal: ApiError, told: bool) -> None:
    first = [line("ERROR", status_responses.failure(refusal))] if told else refusal
    api = ScriptedApi([bookmark(7, ends_list=True)], first, [line("ADDED", shop("a", 2)), bookmark(3, ends_list=True)])
    assert [shown(each) for each in follow(api)] == [("listed", 7, []), ("listed", 3, ["a"])]


def test_an_expired_revision_causes_a_new_list() -> None:
    gone = line("ERROR", status_responses.failure(Expired(9, 20)))
    again = [line("ADDED", shop("b", 21)), bookmark(22, ends_list=True)]
    api = ScriptedApi([bookmark(7, ends_list=True), gone], again, Expired(22, 30), [bookmark(31, ends_list=True)])
    assert [shown(each) for each in follow(api)] == [("listed", 7, []), ("listed", 22, ["b"]), ("listed", 31, [])]


def test_a_broken_watch_resumes_at_its_revision() -> None:
    whole = [line("ADDED", shop("a", 3)), bookmark(7, ends_list=True)]
    api = ScriptedApi(whole, ServiceUnavailable("the line broke"), [b"no json"], [line("ADDED", shop("c", 8))])
    assert [shown(each) for each in follow(api)] == [("listed", 7, ["a"]), ("ADDED", 8, "c")]
    assert [each.get("resourceVersion") for each in api.asked] == [None, "7", "7", "7", "8"]


def test_an_unserved_kind_has_no_objects_until_it_is_served() -> None:
    api = ScriptedApi([line("ADDED", shop("a", 3)), bookmark(7, ends_list=True)], found=False)
    assert [shown(each) for each in follow(api)] == [("listed", 0, []), ("listed", 7, ["a"])]


def test_a_single_object_can_be_followed() -> None:
    api = ScriptedApi([bookmark(7, ends_list=True)])
    follow(api, only=Key("default", "mine"))
    assert api.asked[0]["fieldSelector"] == "metadata.name=mine"
