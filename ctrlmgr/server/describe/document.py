"""Documents: answers that are the same for every client until what is served changes (discovery, OpenAPI, version).

Guarantees:
- A document is immutable and made once; packed once too, if packing pays.
- Its `etag` is a digest of its content: two documents with one tag are the same bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

JSON = "application/json"

_WORTH_PACKING = 1400
"""Bytes that go over a network in one packet anyway."""
_PACKING_LEVEL = 6


class Document(NamedTuple):
    """A whole answer with status 200."""

    content_type: str
    body: bytes
    gzipped: bytes | None
    """The body packed, for those who accept it; None where that would not help."""
    etag: str
    """As it stands in the header, quotes included."""
    immutable: bool = False
    """Whether what was asked for will never be anything else, because the URL holds its digest."""

    @property
    def digest(self) -> str:
        """The digest of the body, as it stands in a URL."""
        return self.etag.strip('"')


def document(content_type: str, body: bytes) -> Document:
    """Make a document of its bytes."""
    packed = gzip.compress(body, _PACKING_LEVEL, mtime=0) if len(body) > _WORTH_PACKING else None
    return Document(content_type, body, packed, f'"{sha256(body).hexdigest().upper()}"')


def json_document(fields: Mapping[str, Any], content_type: str = JSON) -> Document:
    """Make a document of an API object, ending with a newline as Go's encoder writes it."""
    return document(content_type, msgspec.json.encode(fields) + b"\n")


def in_pieces(fields: Mapping[str, Any]) -> dict[str, msgspec.Raw]:
    """Return the same fields, each encoded by itself: one after the other, other threads have their turn in between."""
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in fields.items()}


class Clause(NamedTuple):
    """One alternative of an `Accept` header."""

    media_type: str
    parameters: Mapping[str, str]
    quality: float = 1.0

    def allows(self, media_type: str) -> bool:
        """Whether a plain media type will do."""
        return self.media_type in (media_type, f"{media_type.partition('/')[0]}/*", "*/*")


MOST = 1_000
"""Alternatives of a header that are read, and parameters of one: of a megabyte of them come 40 of objects."""


def alternatives(accept: str) -> list[str]:
    """Return the alternatives of an `Accept` header as they stand."""
    return accept.split(",", MOST)[:MOST]


def preferred(accept: str) -> list[Clause]:
    """Return the alternatives of an `Accept` header, best first: by quality, then stars last (goautoneg).

    No header accepts everything.
    """
    clauses = [_clause(text) for text in alternatives(accept) if text.strip()] or [Clause("*/*", {})]
    return sorted(clauses, key=lambda each: (-each.quality, each.media_type == "*/*", each.media_type.endswith("/*")))


def choose(accept: str, offers: Iterable[str]) -> str | None:
    """Return which of several plain media types suits an `Accept` header best, None if none does."""
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
