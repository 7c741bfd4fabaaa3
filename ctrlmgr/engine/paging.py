"""Encodes and decodes continue tokens, which contain the start of a list's next page and the revision of the list.

Guarantees: tokens have Kubernetes' format (apiserver `pkg/storage/continue.go`). A client that sends a continue token
gets the objects that follow the previous page, at the revision of the first page.
"""

from __future__ import annotations

import posixpath
from base64 import b64decode, urlsafe_b64encode
from typing import NamedTuple

import msgspec

from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import BadRequest

_VERSION = "meta.k8s.io/v1"

NEWEST = -1
"""The special revision of a token whose next page is read from the newest state.

A client receives such a token if the revision of the first page was compacted.
"""


class Place(NamedTuple):
    """The start of a page: the page begins at the path `start` within the list's namespace, at `revision`.

    The revision of a page's start may be `NEWEST`.
    """

    revision: Revision
    start: str


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


_decode = msgspec.json.Decoder(_Token).decode
_encode = msgspec.json.Encoder().encode


def encode_continue(place: Place) -> str:
    """Return the continue token for the start of a page."""
    return urlsafe_b64encode(_encode(_Token(_VERSION, place.revision, place.start))).rstrip(b"=").decode()


def decode_continue(token: str) -> Place:
    """Decode a token; raises `BadRequest` if the token is malformed."""
    try:
        fields = _decode(b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True))
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:  # invalid base64, UTF-8 or JSON
        raise _invalid(str(error)) from error
    if fields.v != _VERSION:
        raise _invalid(f'server does not recognize this encoded version "{fields.v}"')
    if fields.rv != NEWEST and not 0 < fields.rv < 1 << 63:
        raise _invalid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not fields.start:
        raise _invalid(f"encoded start key empty (version {_VERSION})")
    path = "/" + fields.start.removeprefix("/")
    if posixpath.normpath(path) != path or path.startswith("//"):  # the path is outside the list's namespace
        raise _invalid(fields.start)
    return Place(fields.rv, path[1:])


def _invalid(reason: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {reason}")
