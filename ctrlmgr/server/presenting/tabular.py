"""Encodes tables for `kubectl get`, from the columns and cells of a kind's table definition.

Guarantees: the fields and bytes of a table equal those of apiserver's `pkg/endpoints/handlers/response.go` (asTable).
In a watch, only the first frame contains the columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.operations import Listing
from ctrlmgr.engine.tables.table_printer import TableDefinition
from ctrlmgr.errors import BadRequest
from ctrlmgr.golang.go_text import escape_html
from ctrlmgr.server.presenting import encoding
from ctrlmgr.server.presenting.encoding import ListMeta
from ctrlmgr.server.presenting.negotiation import Form

_INCLUDES = ("", "Metadata", "Object", "None")


def parse_include(query: dict[str, list[str]]) -> str:
    """Return the query parameter `includeObject`; raises `BadRequest` if its value is unknown."""
    include = query.get("includeObject", [""])[0]
    if include not in _INCLUDES:
        detail = "must be 'Metadata', 'Object', 'None', or empty"
        raise BadRequest(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": {detail}'
        )
    return include


class Table:
    """Presents objects as rows of a table; implements `presentation.Presentation`."""

    def __init__(
        self, kind: Kind, form: Form, definition: TableDefinition, include: str, clock: Clock, *, columns: bool = True
    ) -> None:
        """Create a presentation of `kind`; `include` is the part of the object in a row: "", Metadata, Object or None.

        If `columns` is not set, this presentation is for the frames after the first frame of a watch.
        """
        self._kind = kind
        self._form = form
        self._definition = definition
        self._include = include
        self._clock = clock
        self._columns = _encode(definition.columns) if columns else b"null"
        self._partial = encoding.type_meta("PartialObjectMetadata", form.api_version)
        self.following = Table(kind, form, definition, include, clock, columns=False) if columns else self

    def one(self, obj: Object) -> bytes:
        """Return an encoded table with one row."""
        return self._table(obj) + b"\n"

    def list(self, listing: Listing) -> Iterator[bytes]:
        """Yield an encoded table with many rows."""
        now = self._clock.now()
        return encoding.pieces(self._head(ListMeta.of(listing)), (self._row(obj, now) for obj in listing.objects))

    def frame(self, type: str, obj: Object) -> bytes:
        """Return an encoded event with a table of one row."""
        return encoding.frame(type, self._table(obj))

    def bookmark(self, revision: Revision, *, initial_events_end: bool = False) -> bytes:
        """Return a BOOKMARK event with one row without cells; the row's object contains the revision."""
        name, version = self._kind.name, self._kind.gvk.api_version
        if self._include != "Object":
            name, version = "PartialObjectMetadata", self._form.api_version
        obj = encoding.bookmark(name, version, revision, initial_events_end=initial_events_end)
        row = b'{"cells":[],"object":%b}' % (b"null" if self._include == "None" else obj)
        return encoding.frame("BOOKMARK", b"%b%b]}" % (self._head(ListMeta(revision)), row))

    def _table(self, obj: Object) -> bytes:
        return b"%b%b]}" % (self._head(ListMeta(obj.revision)), self._row(obj, self._clock.now()))

    def _head(self, metadata: ListMeta) -> bytes:
        return b'{"kind":"Table","apiVersion":"%b","metadata":%b,"columnDefinitions":%b,"rows":[' % (
            self._form.api_version.encode(),
            metadata.encode(),
            self._columns,
        )

    def _row(self, obj: Object, now: int) -> bytes:
        cells = _encode(self._definition.cells(obj, now))
        find = self._definition.conditions
        if find is not None and (conditions := find(obj)):
            return b'{"cells":%b,"conditions":%b,"object":%b}' % (cells, _encode(conditions), self._object(obj))
        return b'{"cells":%b,"object":%b}' % (cells, self._object(obj))

    def _object(self, obj: Object) -> bytes:
        if self._include == "None":
            return b"null"
        if self._include == "Object":
            return obj.wire()
        return b'%b"metadata":%b}' % (self._partial, encoding.metadata(obj))


def _encode(value: object) -> bytes:
    """Encode as Go's encoder does, which escapes `<`, `>` and `&`."""
    return escape_html(msgspec.json.encode(value))
