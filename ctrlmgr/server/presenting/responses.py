"""Creates HTTP responses: objects, errors and plain text.

Guarantees:
- The response to every error is a `Status` whose code is the HTTP status, with Retry-After if a retry may succeed.
- Creating a response takes little time, because most headers are constants.
- A JSON response ends with a newline, as Go's encoder writes it. Indented JSON and YAML are created from compact JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ctrlmgr.api import status_responses
from ctrlmgr.api.warning_limits import LONGEST, LONGEST_TOGETHER
from ctrlmgr.errors import ApiError
from ctrlmgr.http.framing import Header
from ctrlmgr.server.presenting.negotiation import PLAIN, PROTOBUF, Representation
from ctrlmgr.server.presenting.status_protobuf import encode_status
from ctrlmgr.server.presenting.yaml_text import to_yaml

NO_CACHE: Header = (b"cache-control", b"no-cache, private")
NO_SNIFFING: Header = (b"x-content-type-options", b"nosniff")
JSON_TYPE: Header = (b"content-type", b"application/json")
YAML_TYPE: Header = (b"content-type", b"application/yaml")
TEXT_TYPE: Header = (b"content-type", b"text/plain; charset=utf-8")

_PROTOBUF_TYPE: Header = (b"content-type", PROTOBUF.encode())


class Response(NamedTuple):
    """A complete response; the code that sends the response adds the Content-Length header."""

    status: int
    body: bytes
    headers: Sequence[Header] = (JSON_TYPE, NO_CACHE)


def represented(code: int, body: bytes, representation: Representation = PLAIN) -> Response:
    """Return the response for a body in compact JSON, converted to the requested representation."""
    if representation.yaml:
        return Response(code, to_yaml(body), (YAML_TYPE, NO_CACHE))
    return Response(code, indented(body) if representation.pretty else body)


def refused(error: ApiError, representation: Representation = PLAIN) -> Response:
    """Return the response for an error."""
    status = status_responses.failure(error)
    if representation.protobuf:
        response = Response(error.code, encode_status(status), (_PROTOBUF_TYPE, NO_CACHE))
    else:
        response = represented(error.code, status_responses.encode(status), representation)
    seconds = error.details.retry_after_seconds if error.details else 0
    if seconds:
        return response._replace(headers=(*response.headers, (b"retry-after", b"%d" % seconds)))
    return response


def text(code: int, words: str, *headers: Header) -> Response:
    """Return a response in plain text."""
    return Response(code, words.encode(), (TEXT_TYPE, NO_CACHE, NO_SNIFFING, *headers))


def overloaded(error: ApiError) -> Response:
    """Return the response for a request that is refused because too many requests run.

    As in Kubernetes, the body of the response is plain text, and not a Status.
    """
    seconds = error.details.retry_after_seconds if error.details else 0
    return text(error.code, f"{error}\n", (b"retry-after", b"%d" % seconds))


PAGE_NOT_FOUND = text(404, "404 page not found\n")
"""The response for an unknown URL path."""


def warnings(texts: Sequence[str]) -> list[Header]:
    """Return a `Warning` header for each warning (RFC 9111, apimachinery `pkg/util/net/http.go` NewWarningHeader).

    Warnings with control characters are omitted. If all warnings together are too long, each warning is truncated, and
    warnings beyond the limit are omitted (apiserver `pkg/endpoints/filters/warning.go`).
    """
    texts_sent = [each for each in dict.fromkeys(texts) if each and _fits_a_line(each)]
    if sum(map(len, texts_sent)) > LONGEST_TOGETHER:
        texts_sent = _cut(texts_sent)
    return [(b"warning", b'299 - "%s"' % _quoted(each)) for each in texts_sent]


def _cut(texts: Iterable[str]) -> list[str]:
    cut, written = [], 0
    for each in texts:
        if written >= LONGEST_TOGETHER:
            break
        cut.append(each[:LONGEST])
        written += len(cut[-1])
    return cut


def _fits_a_line(words: str) -> bool:
    return not any(ord(each) < 32 or ord(each) == 127 for each in words)


def _quoted(words: str) -> bytes:
    """Escape a string for use as a quoted string in a header."""
    return words.replace("\\", r"\\").replace('"', r"\"").encode("utf-8", "replace")


def indented(body: bytes) -> bytes:
    """Return JSON indented by two spaces without a final newline, as Go's MarshalIndent writes it."""
    return msgspec.json.format(body, indent=2)
