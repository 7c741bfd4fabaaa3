"""Continue tokens: the start of a list's next page, and its revision.

Guarantees: tokens have Kubernetes' format (apiserver `pkg/storage/continue.go`). A token made here returns the objects
after its page, at the first page's revision.
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
"""The revision of a token that continues with the newest state, because the first page's revision was compacted."""


class Place(NamedTuple):
    """The start of a page: `start`, a path within the list's namespace, at `revision`.

    `revision` may be `NEWEST`.
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
    """Return the token for a place."""
    return urlsafe_b64encode(_encode(_Token(_VERSION, place.revision, place.start))).rstrip(b"=").decode()


def decode_continue(token: str) -> Place:
    """Decode a token; raises `BadRequest` if it is malformed."""
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
    if posixpath.normpath(path) != path or path.startswith("//"):  # outside the list's namespace
        raise _invalid(fields.start)
    return Place(fields.rv, path[1:])


def _invalid(reason: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {reason}")
