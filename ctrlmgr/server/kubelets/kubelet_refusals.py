"""Converts a kubelet's error response to an error of the API.

Source: apiserver `pkg/registry/generic/rest/response_checker.go`, apimachinery `pkg/api/errors`
(NewGenericServerResponse).
"""

from __future__ import annotations

import json
from typing import Final

from ctrlmgr.errors import ApiError, BadRequest, InternalError, StatusDetails

_WORDS: Final = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


class KubeletRefusal(ApiError):
    """The API error for a kubelet's error response, with the kubelet's status code."""

    def __init__(self, code: int, reason: str, message: str, details: StatusDetails) -> None:
        """Create an error with the status code `code` and the reason `reason`."""
        super().__init__(message, details=details)
        self.code = code
        self.reason = reason


def refused_by_kubelet(code: int, body: bytes, pod: str) -> ApiError:
    """Return the error for a kubelet's response with this status code and text to a request for the log of `pod`."""
    text = body.decode("utf-8", "replace")
    if code == 500:
        return InternalError(f"Internal error occurred: {text}")
    if code == 400:
        return BadRequest(text)
    reason, message = _words(code, text)
    return KubeletRefusal(code, reason, f"{message} ( pods/log {pod})", StatusDetails(kind="pods/log", name=pod))


def _words(code: int, text: str) -> tuple[str, str]:
    """Return the reason and the message for a kubelet's error response."""
    if code in (403, 406, 415):
        return {403: "Forbidden", 406: "NotAcceptable", 415: "UnsupportedMediaType"}[code], text
    if code in _WORDS:
        return _WORDS[code]
    if code > 500:
        quoted = json.dumps(text, ensure_ascii=False)
        return "InternalError", f"an error on the server ({quoted}) has prevented the request from succeeding"
    return "", f"the server responded with the status code {code} but did not return more information"
