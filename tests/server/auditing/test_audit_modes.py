"""Tests of blocking audit modes: a request waits until its events are written, or is refused if writing fails."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from ctrlmgr.audit.batches import Batching
from ctrlmgr.audit.log_file import LogFile, Rotation
from ctrlmgr.audit.policy import Stage, read_policy
from ctrlmgr.audit.request_events import StageEvent, form
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.serve.auditing import AuditLog
from ctrlmgr.server.auditing.audit_backends import ToFile
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.request import Request
from ctrlmgr.settings import Settings
from ctrlmgr.settings.audit_settings import AuditSettings
from tests.audit.records import ReceivedRequest, stage_event
from tests.server.site import CONFIG_MAPS, Site, make, running

POLICY = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}"
BODY = {"metadata": {"name": "c"}}


class RequestDouble(ReceivedRequest):
    """A request that has no response yet."""

    code = 201
    audit: Record | None = None

    def __init__(self) -> None:
        super().__init__(b"one")
        self.notes = AuthenticationNotes()


class FailingBackend:
    """An audit backend, optionally slow, that stores events until a test makes it fail."""

    def __init__(self, *, is_strict: bool) -> None:
        self.is_strict = is_strict
        self.fails = False
        self.stages: list[Stage] = []
        self.told: list[int] = []

    def process_events(self, events: Sequence[StageEvent]) -> bool:
        self.stages += [event.stage for event in events]
        self.told.append(len(events))
        return not self.fails

    async def store(self, event: StageEvent) -> bool:
        await asyncio.sleep(0)
        return self.process_events([event])


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


@pytest.fixture(params=itertools.product(["fast", "slow"], [True, False]), ids=str)
def stage(request: pytest.FixtureRequest, policy: Path) -> Iterator[tuple[Site, FailingBackend]]:
    which, is_strict = request.param
    backend = FailingBackend(is_strict=is_strict)
    backends, slow = ([backend], []) if which == "fast" else ([], [backend])
    auditing = Auditing(read_policy(policy), backends, [], slow, clock=SystemClock())
    with running(make(auditing=auditing)) as site:
        yield site, backend


def test_a_failing_strict_backend_stops_requests(stage: tuple[Site, FailingBackend]) -> None:
    site, backend = stage
    assert site.ask(CONFIG_MAPS, "POST", BODY).status == 201
    backend.fails = True
    answer = site.ask(CONFIG_MAPS, "POST", {"metadata": {"name": "d"}})
    backend.fails = False
    if backend.is_strict:
        assert (answer.status, answer.body) == (
            500,
            f'Internal Server Error: "{CONFIG_MAPS}": failed to store audit event\n',
        )
    assert site.ask(f"{CONFIG_MAPS}/d").status == (404 if backend.is_strict else 200)
    assert backend.stages[:2] == [Stage.REQUEST_RECEIVED, Stage.RESPONSE_COMPLETE]


def test_requests_answered_together_are_audited_together(policy: Path) -> None:
    backend = FailingBackend(is_strict=True)
    step = Auditing(read_policy(policy), [backend], clock=SystemClock())
    about = Attributes("create", CONFIG_MAPS, "", "v1", "configmaps", "", "default")

    def ask() -> tuple[Request, Record]:
        request = cast(Request, RequestDouble())
        step.begin(request, about, User("ann"))
        assert request.audit is not None
        return request, request.audit

    step.end(*ask())
    assert backend.told == [1, 1], "a request by itself is told of when it comes and when it has been answered"
    asked = [ask(), ask()]
    step.begin_batch()
    for each in asked:
        step.end(*each)
    first = ask()
    assert backend.stages[-1] is Stage.REQUEST_RECEIVED, "what is to be known before a request is made does not wait"
    step.end_batch()
    assert backend.told == [1, 1, 1, 1, 1, 2]
    step.end(*first)
    assert backend.told[-1] == 1
    step.end_batch()
    assert len(backend.stages) == 8


def test_every_response_has_an_audit_id() -> None:
    """Return whether a request is recorded in the audit log."""
    with running(make()) as site:
        paths = (CONFIG_MAPS, f"{CONFIG_MAPS}/none", "/livez", "/apis", "/nowhere", CONFIG_MAPS)
        names = [site.ask(path).headers["audit-id"] for path in paths]
        assert len({UUID(name) for name in names}) == len(paths)
        assert site.ask("/livez", "GET", None, {"Audit-ID": "mine"}).headers["audit-id"] == "mine"


def test_a_strict_file_reports_whether_it_was_written(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "audit.log"), Rotation(), clock=SystemClock())
    file = ToFile(log, form(largest=1000), is_strict=True)
    assert file.process_events([stage_event()])
    log.close()  # from now on, writing fails
    assert not file.process_events([stage_event()])


def test_too_large_events_are_counted(tmp_path: Path) -> None:
    def count() -> float:
        return REGISTRY.get_sample_value("apiserver_audit_error_total", {"plugin": "truncate"}) or 0.0

    before = count()
    file = ToFile(LogFile(str(tmp_path / "audit.log"), Rotation(), clock=SystemClock()), form(largest=10))
    assert not file.process_events([stage_event()])
    file.stop()
    assert count() == before + 1
    assert (tmp_path / "audit.log").read_bytes() == b""


@pytest.mark.parametrize("mode", ["blocking", "blocking-strict", "batch"])
@pytest.mark.parametrize("kind", ["json", "legacy"])
def test_the_settings_configure_the_audit_log(policy: Path, tmp_path: Path, mode: str, kind: str) -> None:
    said = AuditSettings(
        policy_file=str(policy), log_path=str(tmp_path / "a.log"), log_mode=mode, log_format=kind, keep_for=0.0
    )
    log = AuditLog(Settings(audit=said, data_dir=str(tmp_path)), clock=SystemClock())
    assert log.step is not None
    [backend] = log.step.backends
    assert backend.is_strict is (mode == "blocking-strict")
    for each in log.kept:
        each.start()
    assert backend.process_events([stage_event()])
    for each in log.kept:
        each.stop()
    assert (b" AUDIT: id=" in (tmp_path / "a.log").read_bytes()) is (kind == "legacy")


@pytest.mark.parametrize("name", ["log_batch_throttle_qps", "log_batch_throttle_burst"])
def test_throttling_requires_its_limits(policy: Path, tmp_path: Path, name: str) -> None:
    said = AuditSettings(
        policy_file=str(policy),
        log_path=str(tmp_path / "a.log"),
        log_mode="batch",
        log_batch_throttle_enable=True,
        log_batch_throttle_qps=0.0 if name.endswith("qps") else 1.0,
        log_batch_throttle_burst=0 if name.endswith("burst") else 1,
    )
    with pytest.raises(SettingsError, match=name):
        AuditLog(Settings(audit=said, data_dir=str(tmp_path)), clock=SystemClock())


def test_batching_without_throttling_is_unlimited() -> None:
    assert Batching().qps == 0.0
