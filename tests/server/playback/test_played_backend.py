"""Tests of a recording behind the API: the objects that clients see while the recording is played, and after it seeks
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

import pytest
from prometheus_client import CollectorRegistry

from ctrlmgr.api.resource import LEASES, Resource
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.eventlog import Author, Proposal
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow
from ctrlmgr.recording.playback.playback_control import Playback
from ctrlmgr.recording.playback.played_log import PlayedLog
from ctrlmgr.recording.playback.player import Player
from ctrlmgr.recording.playback.pretended_writes import PretendedWrites
from ctrlmgr.server import App, Backend, Pages
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.review_resources import Reviews
from ctrlmgr.server.playback.playback_handler import play_pages
from ctrlmgr.server.playback.played_backend import PlayedBackend
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_namespace
from tests.engine.stage import builtin_kinds
from tests.recording.playback.stage import tape
from tests.server.site import Site, serving

CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps"
LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MERGE = {"Content-Type": "application/merge-patch+json"}


class Stage(NamedTuple):
    """A server with a recording that is paused at its beginning."""

    site: Site
    playback: Playback

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Any:
        answer = self.site.ask(path, method, body, headers)
        assert answer.status < 300, answer.body
        return answer.json

    def versions(self, query: str = "") -> dict[str, str]:
        items = self.ask(f"{CONFIG_MAPS}?{query}")["items"]
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}


@contextmanager
def played() -> Iterator[Stage]:
    whole, clock, access = tape(), FakeClock(), AllowEverything()
    pretending = PretendedWrites(lambda: ("then", "now"))
    player = Player(whole.timetable, clock.monotonic(), paused=True)
    playback = Playback(
        "a story",
        player,
        lambda position: PlayedLog(whole, position, pretending, clock=clock, random=Random(1)),
        clock=clock,
        writes=lambda: pretending.count,
    )
    reviews, kinds = Reviews(access, access), builtin_kinds()

    def backend(log: PlayedLog) -> Backend:
        return Backend(log, log.feed, kinds, reviews, clock=clock, random=Random(2), window=10**9, rewinds=True)

    leases = MemoryEventLog(clock=clock, random=Random(3))
    leases.append([Proposal(EventType.ADDED, a_namespace(), 0)], author=Author("test"))
    apart = Backend(leases, EventWindow(leases, clock=clock), kinds, reviews, clock=clock, random=Random(4))
    behind = PlayedBackend(backend(playback.log), {LEASES: apart})
    playback.on_rewind(lambda log: behind.replace(backend(log)))
    pages = Pages([], CollectorRegistry(), kinds, behind.workers, more=play_pages(playback, pretending))
    with serving(App(behind, pages, access, access, clock=clock, random=Random(3))) as url:
        yield Stage(Site(url, playback.log), playback)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with played() as made:
        yield made


def test_lists_show_the_played_moment(stage: Stage) -> None:
    assert stage.versions() == {"a": "100"}
    assert stage.ask("/play/step?events=2", "POST")["revision"] == 251
    assert stage.versions() == {"a": "251", "b": "250"}
    assert stage.ask("/play/seek?to=end", "POST")["ended"]
    assert stage.versions() == {"a": "251", "b": "90000000"}
    assert stage.ask(CONFIG_MAPS)["metadata"]["resourceVersion"] == "90000000"


def test_a_watch_receives_everything_across_the_gaps(stage: Stage) -> None:
    with stage.site.watch("resourceVersion=100", CONFIG_MAPS) as watch, stage.site.watch("", CONFIG_MAPS) as from_state:
        assert from_state.next()["object"]["metadata"]["name"] == "a"
        stage.ask("/play/seek?to=end", "POST")
        expected = [
            ("ADDED", "b", "250"),
            ("MODIFIED", "a", "251"),
            ("DELETED", "b", "5000"),
            ("ADDED", "b", "90000000"),
        ]
        for each in (watch, from_state):
            events = [each.next() for _ in expected]
            metadata = [event["object"]["metadata"] for event in events]
            told = zip(events, metadata, strict=True)
            assert [(event["type"], data["name"], data["resourceVersion"]) for event, data in told] == expected


def test_gaps_between_revisions_cost_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = list[int](), Cacher.changes_after

    def counted(cacher: Cacher, revision: int, resource: Resource, limit: int) -> Any:
        looks.append(revision)
        return look(cacher, revision, resource, limit)

    monkeypatch.setattr(Cacher, "changes_after", counted)
    with stage.site.watch("resourceVersion=100", CONFIG_MAPS) as watch:
        stage.ask("/play/seek?to=end", "POST")
        while watch.next()["object"]["metadata"]["resourceVersion"] != "90000000":
            pass
    assert len(looks) < 20


def test_a_rewind_ends_watches_as_expired(stage: Stage) -> None:
    stage.ask("/play/seek?to=5000", "POST")
    with stage.site.watch("resourceVersion=251", CONFIG_MAPS) as watch, stage.site.watch("", "/api/v1/nodes") as quiet:
        assert watch.next()["type"] == "DELETED"
        stage.ask("/play/seek?to=250", "POST")
        assert stage.versions() == {
            "a": "100",
            "b": "250",
        }  # a request after the answer does not return earlier events
        for each in (watch, quiet):
            *_, last = each.rest()
            assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")
            assert last["object"]["message"].startswith("too old resource version: ")


@pytest.mark.parametrize(
    "query", ["resourceVersion=5000", "resourceVersion=5000&limit=1", "resourceVersion=5000&resourceVersionMatch=Exact"]
)
def test_future_revisions_are_expired_for_lists(stage: Stage, query: str) -> None:
    answer = stage.site.ask(f"{CONFIG_MAPS}?{query}")
    assert (answer.status, answer.json["reason"]) == (410, "Expired")


@pytest.mark.parametrize("more", ["", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"])
def test_future_revisions_are_expired_for_watches(stage: Stage, more: str) -> None:
    with stage.site.watch(f"resourceVersion=5000{more}", CONFIG_MAPS) as watch:
        (event,) = watch.rest()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_revisions_before_the_recording_are_expired(stage: Stage) -> None:
    with stage.site.watch("resourceVersion=99", CONFIG_MAPS) as watch:
        (event,) = watch.rest()
    assert event["object"]["code"] == 410


def test_pages_of_an_earlier_playback_are_expired(stage: Stage) -> None:
    stage.ask("/play/seek?to=251", "POST")
    token = stage.ask(f"{CONFIG_MAPS}?limit=1")["metadata"]["continue"]
    stage.ask("/play/seek?to=start", "POST")
    assert stage.site.ask(f"{CONFIG_MAPS}?limit=1&continue={token}").status == 410
    stage.ask("/play/seek?to=end", "POST")
    (second,) = stage.ask(f"{CONFIG_MAPS}?limit=1&continue={token}")["items"]
    assert second["metadata"]["resourceVersion"] == "250"


def test_the_playback_can_move_back_and_forth_repeatedly(stage: Stage) -> None:
    for _ in range(20):
        with stage.site.watch("", CONFIG_MAPS) as watch:
            assert watch.next()["type"] == "ADDED"
            stage.ask("/play/step?events=9", "POST")
            assert stage.ask("/play/seek?to=start", "POST")["revision"] == 100
            assert watch.rest()[-1]["type"] == "ERROR"
    assert stage.versions() == {"a": "100"}


def test_a_write_is_answered_and_remembered_but_not_stored(stage: Stage) -> None:
    answer = stage.ask(f"{CONFIG_MAPS}/a", "PATCH", {"metadata": {"labels": {"color": "blue"}}}, **MERGE)
    assert answer["metadata"]["labels"] == {"color": "blue"}
    assert answer["metadata"]["resourceVersion"] == "100"
    assert "labels" not in stage.ask(f"{CONFIG_MAPS}/a")["metadata"]
    config_map = {"metadata": {"name": "new"}, "data": {"key": "value"}}
    created = stage.ask(CONFIG_MAPS, "POST", config_map)
    assert created["metadata"]["uid"]
    assert stage.site.ask(f"{CONFIG_MAPS}/new").status == 404
    told = stage.ask("/play/writes")
    assert [(each["verb"], each["resource"], each["name"]) for each in told["writes"]] == [
        ("change", "configmaps", "a"),
        ("create", "configmaps", "new"),
    ]
    assert told["writes"][1]["object"]["data"] == {"key": "value"}
    assert [each["number"] for each in stage.ask("/play/writes?after=1&limit=1")["writes"]] == [2]
    assert stage.ask("/play")["writes"] == told["count"] == 2


def test_a_dry_run_is_not_remembered(stage: Stage) -> None:
    stage.ask(f"{CONFIG_MAPS}/a?dryRun=All", "PATCH", {"metadata": {"labels": {"color": "blue"}}}, **MERGE)
    assert stage.ask("/play/writes") == {"count": 0, "writes": []}


def test_leases_survive_rewinds(stage: Stage) -> None:
    lease = stage.ask(LEASES_PATH, "POST", {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "me"}})
    stage.ask("/play/seek?to=end", "POST")
    stage.ask("/play/seek?to=start", "POST")
    lease["spec"]["holderIdentity"] = "you"
    assert stage.ask(f"{LEASES_PATH}/leader", "PUT", lease)["spec"]["holderIdentity"] == "you"
    assert stage.site.ask(f"{LEASES_PATH}/leader", "PUT", lease).status == 409  # one client cannot get it twice
    assert stage.ask("/play/writes")["count"] == 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/play", 405),
        ("POST", "/play/writes", 405),
        ("GET", "/play/pause", 405),
        ("GET", "/play/seek?to=end", 405),
        ("POST", "/play/seek", 400),
        ("POST", "/play/seek?to=nowhere", 400),
        ("POST", "/play/step?events=many", 400),
        ("POST", "/play/speed", 400),
        ("POST", "/play/speed?times=fast", 400),
        ("POST", "/play/speed?times=0", 400),
        ("POST", "/play/speed?times=nan", 400),
        ("GET", "/play/writes?after=x", 400),
        ("GET", "/play/nothing", 404),
    ],
)
def test_an_invalid_command_is_refused_without_effect(stage: Stage, method: str, path: str, status: int) -> None:
    before = stage.ask("/play")
    assert stage.site.ask(path, method).status == status
    assert stage.ask("/play") == before


def test_commands_return_the_new_position(stage: Stage) -> None:
    assert stage.ask("/play/resume", "POST")["paused"] is False
    assert stage.ask("/play/speed?times=2.5", "POST")["speed"] == 2.5
    assert stage.ask("/play/pause", "POST")["paused"] is True
    assert stage.ask("/play/step", "POST")["revision"] == 250
    assert stage.ask("/play/step?events=-1", "POST")["revision"] == 100
    assert stage.ask("/play/seek?to=%2B2s", "POST")["time"] == "2026-01-01T00:00:02.000000Z"
