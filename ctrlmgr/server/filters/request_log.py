"""Writes one log line for each request that has ended, with the fields of kube-apiserver's line "HTTP".

In addition to these fields, the line has the latency of each stage of the request.

Source: apiserver `pkg/server/httplog/httplog.go`; for the `apf_` fields `pkg/server/filters/priority-and-fairness.go`.
"""

from __future__ import annotations

from typing import Any

import structlog

from ctrlmgr.golang.go_duration import write_go_duration
from ctrlmgr.server.filters.in_flight_limits import Seat
from ctrlmgr.server.request import Request
from ctrlmgr.tracing.latencies import Latencies

log = structlog.get_logger(__name__)


def log_request(request: Request, verb: str, seat: Seat, seconds: float, latencies: Latencies) -> None:
    """Write the line of a request that has taken `seconds`; `seat` was its place among the concurrent requests."""
    ending: dict[str, Any] = {"resp": request.code} if request.exchange.side is None else {"hijacked": True}
    log.info(
        "HTTP",
        verb=verb.upper(),
        URI=request.uri,
        latency=write_go_duration(seconds),
        userAgent=request.header(b"user-agent").decode("utf-8", "replace"),
        **{"audit-ID": request.id.decode("utf-8", "replace")},
        srcIP=request.peer,
        **seat.log_fields(),
        **ending,
        latencies={stage: write_go_duration(spent) for stage, spent in latencies.stages.items()},
    )
