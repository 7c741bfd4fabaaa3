"""Tests of audit events that the server sends to another server."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr.audit.batches import Batching
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server.auditing.audit_webhook import Blocking, ToWebhook
from tests.audit.records import stage_event

BATCHING = Batching(max_size=2, max_wait=0.01)


class Receiver:
    """A server that receives lists of events; it responds with the status codes in `codes` in order, and then with
    success.
    """

    def __init__(self) -> None:
        self.lists: list[Any] = []
        self.tokens: set[str | None] = set()
        self.codes: list[int] = []
        self._came = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.tokens.add(self.headers["Authorization"])
                self.send_response(receiver.take(json.loads(body)))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/events"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def take(self, events: Any) -> int:
        with self._came:
            code = self.codes.pop(0) if self.codes else 200
            self.lists.append(events)
            self._came.notify_all()
            return code

    def wait_for(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.lists) >= count, 20)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


def webhook(folder: Path, url: str, backoff: float = 0.01) -> ToWebhook:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "let-me-in"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "webhook.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return ToWebhook(file, BATCHING, backoff, clock=SystemClock())


def lost() -> float:
    return REGISTRY.get_sample_value("apiserver_audit_error_total", {"plugin": "webhook"}) or 0.0


def test_events_are_sent_as_lists(tmp_path: Path, receiver: Receiver) -> None:
    sending = webhook(tmp_path, receiver.url)
    for number in range(3):
        sending.process_events([stage_event(str(number))])
    sending.start()
    sending.stop()
    assert [[event["auditID"] for event in each["items"]] for each in receiver.lists] == [["0", "1"], ["2"]]
    assert (receiver.lists[0]["kind"], receiver.lists[0]["apiVersion"]) == ("EventList", "audit.k8s.io/v1")
    assert receiver.tokens == {"Bearer let-me-in"}


def test_failed_batches_are_retried_and_refused_ones_are_not(tmp_path: Path, receiver: Receiver) -> None:
    receiver.codes += [503, 429, 200, 400]
    before = lost()
    sending = webhook(tmp_path, receiver.url)
    sending.start()
    sending.process_events([stage_event()])
    receiver.wait_for(3)
    assert lost() == before
    sending.process_events([stage_event()])
    receiver.wait_for(4)
    sending.stop()
    assert len(receiver.lists) == 4
    assert lost() == before + 1


def test_undeliverable_batches_are_dropped_without_delaying_others(tmp_path: Path) -> None:
    before = lost()
    sending = webhook(tmp_path, "http://127.0.0.1:1", backoff=60.0)
    sending.start()
    sending.process_events([stage_event()])
    sending.stop()
    assert lost() == before + 1


@pytest.mark.parametrize(("code", "kept"), [(200, True), (400, False)])
def test_a_request_can_wait_for_the_delivery_of_its_event(
    tmp_path: Path, receiver: Receiver, code: int, *, kept: bool
) -> None:
    receiver.codes += [code]
    blocking = Blocking(webhook(tmp_path, receiver.url), is_strict=True)
    blocking.start()
    assert asyncio.run(blocking.store(stage_event("seven"))) is kept
    blocking.stop()
    assert [event["auditID"] for event in receiver.lists[0]["items"]] == ["seven"]


def test_a_watcher_of_an_unencodable_change_gets_an_error(tmp_path: Path) -> None:
    blocking = Blocking(webhook(tmp_path, "http://127.0.0.1:1"), is_strict=True)
    blocking.start()
    assert asyncio.run(blocking.store(stage_event())) is False
    blocking.stop()


def test_an_unusable_kubeconfig_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        ToWebhook(tmp_path / "none", BATCHING, 1.0, clock=SystemClock())
