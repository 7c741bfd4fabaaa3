"""Defines documents that are equal for all clients until the kinds change: discovery, OpenAPI and the version.

Guarantees:
- A document never changes. If compression saves space, the document is compressed once, when it is created.
- The `etag` of a document is a digest of the document's content, so documents with equal tags have equal bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

JSON = "application/json"

_WORTH_PACKING = 1400
"""Minimum size for compression, in bytes; a smaller document fits into one network packet."""
_PACKING_LEVEL = 6


class Document(NamedTuple):
    """A document, which is sent in a response with the status 200."""

    content_type: str
    body: bytes
    gzipped: bytes | None
    """The body compressed with gzip; None if the body is too small to be compressed."""
    etag: str
    """The value of the ETag header, with quotes."""
    immutable: bool = False
    """Whether the URL contains the document's digest, so that clients may cache the response without a time limit."""

    @property
    def digest(self) -> str:
        """The digest of the body, in the form in which URLs contain it."""
        return self.etag.strip('"')


def document(content_type: str, body: bytes) -> Document:
    """Create a document whose body is the given bytes."""
    packed = gzip.compress(body, _PACKING_LEVEL, mtime=0) if len(body) > _WORTH_PACKING else None
    return Document(content_type, body, packed, f'"{sha256(body).hexdigest().upper()}"')


def json_document(fields: Mapping[str, Any], content_type: str = JSON) -> Document:
    """Create a document from an API object, with a final newline as Go's encoder writes it."""
    return document(content_type, msgspec.json.encode(fields) + b"\n")


def in_pieces(fields: Mapping[str, Any]) -> dict[str, msgspec.Raw]:
    """Return the fields with each value encoded separately, so that other threads can run between the values."""
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in fields.items()}


class Clause(NamedTuple):
    """One alternative of an `Accept` header, with its quality."""

    media_type: str
    parameters: Mapping[str, str]
    quality: float = 1.0

    def allows(self, media_type: str) -> bool:
        """Return whether this alternative matches a media type without parameters."""
        return self.media_type in (media_type, f"{media_type.partition('/')[0]}/*", "*/*")


MOST = 1_000
"""Maximum number of alternatives in an `Accept` header, and of parameters in one, because the objects for alternatives
and parameters need much memory.
"""


def alternatives(accept: str) -> list[str]:
    """Return the alternatives of an `Accept` header as strings."""
    return accept.split(",", MOST)[:MOST]


def preferred(accept: str) -> list[Clause]:
    """Return the alternatives of an `Accept` header by descending quality, wildcards last (as goautoneg does).

    A missing `Accept` header accepts everything.
    """
    clauses = [_clause(text) for text in alternatives(accept) if text.strip()] or [Clause("*/*", {})]
    return sorted(clauses, key=lambda each: (-each.quality, each.media_type == "*/*", each.media_type.endswith("/*")))


def choose(accept: str, offers: Iterable[str]) -> str | None:
    """Return the media type that an `Accept` header prefers among plain `offers`.

    The function returns None if the header accepts none of `offers`.
    """
    offers = tuple(offers)
    for clause in preferred(accept):
        for offer in offers:
            if clause.allows(offer):
                return offer
    return None


def _clause(text: str) -> Clause:
    media_type, *parameters = (part.strip() for part in text.split(";", MOST)[:MOST])
    pairs = (part.partition("=") for part in parameters)
    named = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
    try:
        quality = float(named.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return Clause(media_type.lower(), named, quality)
