"""Tests of the fairness filter in a served application: requests wait, are refused, and release their seats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ctrlmgr.authentication.user import User
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.fairness.fairness_pages import table
from tests.background import background
from tests.server.site import CONFIG_MAPS, ApplicationAndLog, Site, make, running

ALICE = User("alice", "", ("system:authenticated",))
FUTURE = f"{CONFIG_MAPS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan"
GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
ANY = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
ONE_QUEUE = {"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": 3}}


@contextmanager
def one_seat() -> Iterator[tuple[Site, ApplicationAndLog]]:
    """Serve an application with a single seat; alice's requests wait for this seat in one queue."""
    made = make(seats=1, access=AllowEverything(ALICE))
    with running(made) as site:
        limited = {"nominalConcurrencyShares": 1000, "limitResponse": ONE_QUEUE}
        level = {"metadata": {"name": "one"}, "spec": {"type": "Limited", "limited": limited}}
        assert site.ask(f"{GROUP}/prioritylevelconfigurations", "POST", level).status == 201
        subject = {"kind": "User", "user": {"name": "alice"}}
        rules = [{"subjects": [subject], "resourceRules": [ANY]}]
        spec = {"priorityLevelConfiguration": {"name": "one"}, "matchingPrecedence": 7, "rules": rules}
        assert site.ask(f"{GROUP}/flowschemas", "POST", {"metadata": {"name": "one"}, "spec": spec}).status == 201
        yield site, made


def queues(made: ApplicationAndLog) -> Any:
    (level,) = [each for each in made.fairness.levels.present if each.name == "one"]
    return level.queues


def until(site: Site, claim: Any) -> None:
    """Send exempt requests until a condition holds; each request lets the server run a step of its event loop."""
    for _ in range(10_000):
        if claim():
            return
        site.ask("/livez")
    pytest.fail("it did not come true")


def test_a_request_without_a_seat_is_refused_with_kubernetes_message() -> None:
    with running(make(seats=1, access=AllowEverything(ALICE))) as site:
        first = background(lambda: site.ask(FUTURE))
        for _ in range(1000):
            answer = site.ask(CONFIG_MAPS)
            if answer.status != 200:
                break
        assert (answer.status, answer.body) == (429, "Too many requests, please try again later.\n")
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["content-type"].startswith("text/plain")
        assert "x-kubernetes-pf-prioritylevel-uid" in answer.headers
        assert first.result().status == 504


def test_responses_name_the_schema_and_the_level() -> None:
    with one_seat() as (site, _):
        uid = site.ask(f"{GROUP}/flowschemas/one").json["metadata"]["uid"]
        for path in (CONFIG_MAPS, f"{CONFIG_MAPS}/missing"):
            assert site.ask(path).headers["x-kubernetes-pf-flowschema-uid"] == uid


def test_a_request_waits_for_a_seat_and_then_runs() -> None:
    with one_seat() as (site, made):
        first = background(lambda: site.ask(FUTURE))
        until(site, lambda: queues(made).running)
        second = background(lambda: site.ask(CONFIG_MAPS))
        until(site, lambda: queues(made).waiting)
        assert (first.result().status, second.result().status) == (504, 200)
        (counts,) = [each for each in made.fairness.levels.counts if each.schema == "one"]
        assert sum(counts.waits["true"].buckets) == 1
        until(site, lambda: queues(made).is_idle)


def test_a_client_that_disconnects_leaves_the_queue() -> None:
    with one_seat() as (site, made):
        first = background(lambda: site.ask(FUTURE))
        until(site, lambda: queues(made).running)
        with site.connect() as connection:
            connection.sendall(f"GET {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            until(site, lambda: queues(made).waiting)
        until(site, lambda: not queues(made).waiting)
        assert queues(made).cancelled == 1
        assert first.result().status == 504


def test_a_watch_releases_its_seat_after_its_start() -> None:
    with one_seat() as (site, made), site.watch() as watch:
        site.create("a")
        assert watch.next()["object"]["metadata"]["name"] == "a"
        until(site, lambda: queues(made).seats_in_use == 0)


def test_a_withheld_body_holds_no_seat() -> None:
    with one_seat() as (site, made):
        body = json.dumps({"metadata": {"name": "late"}}).encode()
        with site.connect() as connection:
            head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body[:5])
            until(site, lambda: queues(made).dispatched and queues(made).is_idle)
            assert site.ask(CONFIG_MAPS).status == 200
            connection.sendall(body[5:])
            assert connection.recv(1000).startswith(b"HTTP/1.1 201")
        until(site, lambda: queues(made).is_idle)


def test_a_table_is_aligned_like_go() -> None:
    assert table([("Name", "Index", "Last"), ("a-long-name", 1, "x")]) == (
        "Name,        Index,  Last\na-long-name, 1,      x\n"
    )
