"""Tests of the metrics with kube-apiserver's names, and of the debug dumps of levels, queues and requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.server.fairness.fair_queuing import Ticket
from ctrlmgr.server.fairness.fairness_metrics import FairnessMetrics
from ctrlmgr.server.fairness.fairness_pages import fairness_pages
from ctrlmgr.server.presenting.responses import Response
from tests.server.fairness.test_level_state import JANE, LIST, LevelStage

PATH = "/debug/api_priority_and_fairness"


class ReportedRequest:
    """The part of a request that the debug pages show."""

    def __init__(self, **query: str) -> None:
        self.query = {name: [value] for name, value in query.items()}


@pytest.fixture
def busy() -> LevelStage:
    """Return priority levels with one running request, and with waiting requests of the same flow."""
    world = LevelStage(6)
    flow = world.states.assign(JANE, LIST)
    for _ in range(9):
        ticket = Ticket(flow, LIST)
        assert flow.queues.start(ticket)
    return world


def dump(world: LevelStage, name: str, **query: str) -> list[list[str]]:
    request: Any = ReportedRequest(**query)
    page = fairness_pages(world.states, SystemClock())[f"{PATH}/{name}"]
    answer: Response = asyncio.run(page(request))  # type: ignore[arg-type]  # a coroutine
    return [[cell.strip() for cell in line.split(",")] for line in answer.body.decode().splitlines()]


def test_the_levels_are_dumped(busy: LevelStage) -> None:
    head, *rows = dump(busy, "dump_priority_levels")
    assert head[:4] == ["PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing"]
    (row,) = [row for row in rows if row[0] == "global-default"]
    (level,) = [each for each in busy.states.levels if each.name == "global-default"]
    assert row[2:] == ["false", "false", str(9 - level.current), str(level.current), str(level.current), "0", "0", "0"]


def test_the_queues_are_dumped(busy: LevelStage) -> None:
    head, *rows = dump(busy, "dump_queues")
    assert head[-1] == "TotalWorkSum"
    waiting = [row for row in rows if row[0] == "global-default" and row[2] != "0"]
    assert sum(int(row[2]) for row in waiting) == sum(int(row[7]) for row in waiting)
    assert all(row[5].endswith("ss") for row in rows)


def test_the_requests_are_dumped(busy: LevelStage) -> None:
    head, *rows = dump(busy, "dump_requests")
    assert (len(head), len(rows)) == (10, 9)
    assert {(row[0], row[1], row[4], row[6]) for row in rows} == {("global-default", "global-default", "jane", "1")}
    head, *rows = dump(busy, "dump_requests", includeRequestDetails="1")
    assert head[-3:] == ["APIVersion", "Resource", "SubResource"]
    assert {tuple(row[10:]) for row in rows} == {("jane", "list", "", "shop", "", "v1", "pods", "")}


def test_metrics_count_running_and_waiting_requests(busy: LevelStage) -> None:
    metrics = FairnessMetrics()
    assert list(metrics.collect()) == []
    metrics.levels = busy.states
    values = {
        (sample.name, sample.labels.get("priority_level"), sample.labels.get("bound")): sample.value
        for metric in metrics.collect()
        for sample in metric.samples
    }
    level = "global-default"
    running = next(each.current for each in busy.states.levels if each.name == level)
    prefix = "apiserver_flowcontrol_"
    assert values[f"{prefix}current_executing_requests", level, None] == running
    assert values[f"{prefix}current_inqueue_requests", level, None] == 9 - running
    assert values[f"{prefix}dispatched_requests_total", level, None] == running
    assert values[f"{prefix}request_queue_length_after_enqueue_count", level, None] == 9
    assert values[f"{prefix}nominal_limit_seats", "workload-low", None] == 3
    assert values[f"{prefix}next_s_bounds", level, "max"] >= values[f"{prefix}next_s_bounds", level, "min"]
