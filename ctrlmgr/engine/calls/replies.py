"""Interprets unsuccessful replies of webhooks as client-go does (`rest/request.go`)."""

from __future__ import annotations

from typing import Final

import msgspec

from ctrlmgr.engine.calls.call import Reply

_REPLIES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
"""The messages of client-go for error responses that are not a Status, by status code."""


def is_success(reply: Reply) -> bool:
    """Return whether client-go treats a reply as a success."""
    return 200 <= reply.code <= 206


def comes_again(reply: Reply) -> bool:
    """Return whether client-go repeats the call after the time in the header `Retry-After` (`rest/with_retry.go`)."""
    return reply.retry_after is not None and (reply.code == 429 or reply.code >= 500)


def is_passing(reply: Reply) -> bool:
    """Return whether a retry may succeed after this failure (apiserver `webhook.DefaultShouldRetry`)."""
    if (reply.retry_after or 0) > 0 or "connection reset by peer" in reply.problem:
        return True
    return reply.code == 429 or (reply.code >= 500 and reply.code != 503)


def unexpected(reply: Reply) -> str:
    """Return client-go's message for an answer with this status code."""
    try:
        status = msgspec.json.decode(reply.body)
    except msgspec.DecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return str(status.get("message") or "unknown")
    is_text = not reply.media_type or reply.media_type.startswith("text/")
    text = reply.body.decode(errors="replace").strip() if is_text else "unknown"
    if reply.code in _REPLIES:
        return _REPLIES[reply.code]
    if reply.code == 403:
        return text
    if reply.code >= 500:
        return f'an error on the server ("{text}") has prevented the request from succeeding'
    return f"the server responded with the status code {reply.code} but did not return more information"
