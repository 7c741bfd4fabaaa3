"""Serves the state of priority and fairness as tables below `/debug/api_priority_and_fairness`.

| path | a row for |
|---|---|
| `dump_priority_levels` | each priority level |
| `dump_queues` | each queue |
| `dump_requests` | each request that waits or runs; `?includeRequestDetails=1` also shows its verb, path and user |

Source: apiserver `pkg/util/flowcontrol/apf_controller_debug.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ctrlmgr.clock import Clock, format_time
from ctrlmgr.golang.go_duration import write_go_duration
from ctrlmgr.server.fairness.fair_queuing import Ticket
from ctrlmgr.server.fairness.level_state import Level, LevelStates
from ctrlmgr.server.fairness.queue_settings import SCALE
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.presenting.responses import Response, text
from ctrlmgr.server.request import Request

_PATH: Final = "/debug/api_priority_and_fairness"
_DETAILS: Final = "includeRequestDetails"
_WIDTH: Final = 8
_NEVER: Final = "0001-01-01T00:00:00Z"
"""Go's zero time, which stands for the start time of a request that is still waiting."""

_LEVELS: Final = (
    *("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests"),
    *("DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"),
)
_QUEUES: Final = (
    *("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR"),
    *("InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"),
)
_REQUESTS: Final = (
    *("PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime"),
    *("InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"),
)
_ASKED: Final = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")

_Row = Sequence[object]


def fairness_pages(levels: LevelStates, clock: Clock) -> dict[str, Page]:
    """Return the debug pages by URL path."""

    async def dump_levels(request: Request) -> Response:
        return text(200, table([_LEVELS, *map(_level_row, levels.levels)]))

    async def dump_queues(request: Request) -> Response:
        return text(200, table([_QUEUES, *(row for level in levels.levels for row in _queue_rows(level))]))

    async def dump_requests(request: Request) -> Response:
        detailed = bool(request.query.get(_DETAILS, [""])[0])
        heads = (*_REQUESTS, *_ASKED) if detailed else _REQUESTS
        offset = clock.now() / 1_000_000 - clock.monotonic()
        rows = (row for level in levels.levels for row in _request_rows(level, offset, detailed=detailed))
        return text(200, table([heads, *rows]))

    return {
        f"{_PATH}/dump_priority_levels": dump_levels,
        f"{_PATH}/dump_queues": dump_queues,
        f"{_PATH}/dump_requests": dump_requests,
    }


def table(rows: Sequence[_Row]) -> str:
    """Align rows as Go's `tabwriter` does: commas between cells, and columns of at least 8 characters."""
    cells = [[*(f"{cell}," for cell in row[:-1]), str(row[-1])] for row in rows]
    columns = max(len(row) for row in cells) - 1
    widths = [max(_WIDTH, *(len(row[at]) + 1 for row in cells)) for at in range(columns)]
    lines = ("".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in cells)
    return "".join(f"{line}\n" for line in lines)


def _level_row(level: Level) -> _Row:
    queues = level.queues
    active = sum(bool(queue.waiting) for queue in queues.queues)
    states = (_go(queues.is_idle), _go(level.is_quiescing))
    return (
        *(level.name, active, *states, queues.waiting, len(queues.running), queues.dispatched),
        *(queues.rejected, 0, queues.cancelled),
    )


def _go(value: bool) -> str:  # a value to show
    return "true" if value else "false"


def _queue_rows(level: Level) -> Iterator[_Row]:
    for index, queue in enumerate(level.queues.queues):
        waiting = queue.waiting
        yield (
            *(level.name, index, len(waiting), queue.running, queue.seats, _seat_seconds(queue.next_start)),
            *(sum(each.width.initial for each in waiting), sum(each.width.seats for each in waiting)),
            _seat_seconds(sum(each.width.work for each in waiting)),
        )


def _seat_seconds(work: int) -> str:
    whole, rest = divmod(work, SCALE)
    return f"{whole}.{rest:08d}ss"


def _request_rows(level: Level, offset: float, *, detailed: bool) -> Iterator[_Row]:
    queues = level.queues
    for queue in queues.queues:
        for position, ticket in enumerate(queue.waiting):
            yield _request_row(level, position, ticket, offset, detailed=detailed)
    for ticket in queues.running:
        yield _request_row(level, -1, ticket, offset, detailed=detailed)


def _request_row(level: Level, position: int, ticket: Ticket, offset: float, *, detailed: bool) -> _Row:
    flow, width = ticket.flow, ticket.width
    queue = -1 if ticket.queue is None else ticket.queue.index
    started = _NEVER if ticket.started < 0 else _time(ticket.started + offset)
    row = (
        *(level.name, flow.schema.name, queue, position, flow.distinguisher, _time(ticket.came + offset)),
        *(width.initial, width.final, write_go_duration(width.latency), started),
    )
    attributes = ticket.asked
    if not detailed:
        return row
    version = f"{attributes.group}/{attributes.version}" if attributes.group else attributes.version
    what = (
        attributes.verb,
        attributes.path,
        attributes.namespace,
        attributes.name,
        version,
        attributes.resource,
        attributes.subresource,
    )
    return (*row, flow.user, *what)


def _time(seconds: float) -> str:
    return format_time(int(seconds * 1_000_000))
