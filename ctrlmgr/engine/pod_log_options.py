"""Reads PodLogOptions from a query and validates them, with Kubernetes' error messages.

Source: `pkg/apis/core/validation` (`ValidatePodLogOptions`), `pkg/registry/core/pod/rest/log.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctrlmgr.api.field import FieldError, forbidden, invalid, refuse
from ctrlmgr.clock import parse_time
from ctrlmgr.engine.request_options import Query, read_flag, read_integer, read_text
from ctrlmgr.errors import BadRequest


class LogOptions(NamedTuple):
    """The options of a log request: the container, the lines, and the form of the output."""

    container: str = ""
    """The name of the container; empty if the pod has only one container."""
    follow: bool = False
    """Whether the response continues with the lines that the container writes later."""
    previous: bool = False
    """Whether the log of the container's previous run is read."""
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    since_time: int | None = None
    """The time, in microseconds since 1970, before which lines are omitted."""
    limit_bytes: int | None = None
    skips_verification: bool = False
    """Whether verification of the kubelet's certificate is skipped (`insecureSkipTLSVerifyBackend`)."""


def parse_log(query: Query, pod: str) -> LogOptions:
    """Read and validate the log options in a query, for the pod with this name.

    Raises `BadRequest` or `Invalid` if an option is malformed or invalid.
    """
    since = read_text(query, "sinceTime")
    try:
        since_time = parse_time(since) if since else None
    except ValueError as problem:
        raise BadRequest(str(problem)) from problem
    options = LogOptions(
        read_text(query, "container"),
        bool(read_flag(query, "follow")),
        bool(read_flag(query, "previous")),
        bool(read_flag(query, "timestamps")),
        read_integer(query, "tailLines"),
        read_integer(query, "sinceSeconds"),
        since_time,
        read_integer(query, "limitBytes"),
        bool(read_flag(query, "insecureSkipTLSVerifyBackend")),
    )
    errors = [*_errors(options), *([forbidden("stream", "may not be specified")] if "stream" in query else ())]
    if errors:
        raise refuse("PodLogOptions", "", pod, errors)
    return options


def _errors(options: LogOptions) -> Sequence[FieldError]:
    errors: list[FieldError] = []
    if options.tail_lines is not None and options.tail_lines < 0:
        errors.append(invalid("tailLines", options.tail_lines, "must be greater than or equal to 0"))
    if options.limit_bytes is not None and options.limit_bytes < 1:
        errors.append(invalid("limitBytes", options.limit_bytes, "must be greater than 0"))
    if options.since_seconds is not None and options.since_time is not None:
        errors.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif options.since_seconds is not None and options.since_seconds < 1:
        errors.append(invalid("sinceSeconds", options.since_seconds, "must be greater than 0"))
    return errors
