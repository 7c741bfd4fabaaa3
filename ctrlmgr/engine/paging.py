"""Continue tokens: where the next page of a list starts, and as of which revision.

Guarantees: a token reads as Kubernetes' does (apiserver `pkg/storage/continue.go`), and one made here leads to the
objects that follow the page it came with, at the first page's revision.
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
"""The revision of a token that goes on with what is newest, after the first page's revision was compacted away."""


class Place(NamedTuple):
    """Where a list goes on: at `start`, a path within the list's namespace, as of `revision`.

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
    """Read a token; raises `BadRequest` when it is not one."""
    try:
        fields = _decode(b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True))
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:  # no base64, no UTF-8, or no such JSON
        raise _invalid(str(error)) from error
    if fields.v != _VERSION:
        raise _invalid(f'server does not recognize this encoded version "{fields.v}"')
    if fields.rv != NEWEST and not 0 < fields.rv < 1 << 63:
        raise _invalid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not fields.start:
        raise _invalid(f"encoded start key empty (version {_VERSION})")
    path = "/" + fields.start.removeprefix("/")
    if posixpath.normpath(path) != path or path.startswith("//"):  # no token leads out of the list's namespace
        raise _invalid(fields.start)
    return Place(fields.rv, path[1:])


def _invalid(reason: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {reason}")
