"""Writes the trace of each slow request to the log: the time of its steps.

The line has the fields of kube-apiserver's line `Trace[NUMBER]: "Get" … (total time: 812ms):`. The time in the filters
(authentication, fairness, authorization) does not count.

Source: `k8s.io/utils/trace`, apiserver `pkg/endpoints/handlers/trace_util.go`.
"""

from __future__ import annotations

from typing import Final

import structlog

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.golang.go_duration import write_go_duration
from ctrlmgr.server.request import Request

log = structlog.get_logger(__name__)

SLOW: Final = 0.5
"""The duration in seconds from which a request is slow."""
_NAMES: Final = {"deletecollection": "Delete"}
"""The name of a verb's trace, if it is not the capitalized verb."""


def log_trace(request: Request, attributes: Attributes, ended: float, number: int) -> None:
    """Write the trace of a request that ended at `ended`; `number` identifies the trace in the log."""
    answered = request.answered_at or ended
    steps = {
        "About to write a response": write_go_duration(answered - request.performed_at),
        "Writing http response done": write_go_duration(ended - answered),
    }
    measured = request.latencies.stages if request.latencies is not None else {}
    log.info(
        f'Trace[{number}]: "{_NAMES.get(attributes.verb, attributes.verb.capitalize())}"',
        total_time=write_go_duration(ended - request.performed_at),
        steps=steps,
        latencies={stage: write_go_duration(seconds) for stage, seconds in measured.items()},
        verb=attributes.verb.upper(),
        url=request.location.path,
        resource=attributes.resource,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
        client=request.peer,
        resp=request.code,
        **{
            "accept": request.header(b"accept").decode("utf-8", "replace"),
            "api-group": attributes.group,
            "api-version": attributes.version,
            "audit-id": request.id.decode("utf-8", "replace"),
            "user-agent": request.header(b"user-agent").decode("utf-8", "replace"),
        },
    )
