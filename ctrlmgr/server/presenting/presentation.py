"""Encodes the objects of one kind in one form: as whole objects, as metadata only, or as a table.

Guarantees: a presentation is immutable and shared by all requests for the same form. Watchers with the same
presentation receive the same bytes for an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Listing
from ctrlmgr.errors import NotAcceptable
from ctrlmgr.server.presenting import encoding
from ctrlmgr.server.presenting.encoding import ListMeta
from ctrlmgr.server.presenting.listings import Listings
from ctrlmgr.server.presenting.negotiation import AS_IS, Form
from ctrlmgr.server.presenting.tabular import Table


class Presentation(Protocol):
    """Encodes objects, lists and events of one kind in one form."""

    @property
    def following(self) -> Presentation:
        """The presentation of the frames after the first frame of a watch.

        If all frames have the same form, `following` is this object itself.
        """

    def one(self, obj: Object) -> bytes:
        """Return an encoded object with a final newline; raises `NotAcceptable` if the form applies only to lists."""

    def list(self, listing: Listing) -> Iterable[bytes]:
        """Return an encoded list in pieces; the result is a sequence if all pieces exist already.

        Raises `NotAcceptable` if the form does not apply to lists.
        """

    def frame(self, type: str, obj: Object) -> bytes:
        """Return an encoded event of a watch: ADDED, MODIFIED or DELETED."""

    def bookmark(self, revision: Revision, *, initial_events_end: bool = False) -> bytes:
        """Return an encoded BOOKMARK event with a revision."""


class Plain:
    """Presents whole objects."""

    def __init__(self, kind: Kind, listings: Listings | None = None) -> None:
        """Create a presentation of `kind` in its served version; `listings`, which other kinds share, encodes lists."""
        self._listings = listings or Listings()
        self._is_custom = kind.is_custom
        self._name = kind.name
        self._list_name = kind.list_name
        self._api_version = kind.gvk.api_version
        self._type_meta = encoding.type_meta(kind.name, kind.gvk.api_version)

    @property
    def following(self) -> Plain:
        """The presentation itself."""
        return self

    def one(self, obj: Object) -> bytes:
        """Return the whole object as JSON."""
        return obj.wire() + b"\n"

    def list(self, listing: Listing) -> Iterable[bytes]:
        """Return an encoded list of whole objects."""
        head = self._head(listing)
        if self._is_custom:
            return encoding.pieces(head, (obj.wire() for obj in listing.objects))
        return self._listings.pieces(head, listing.objects, self._type_meta)

    def _head(self, listing: Listing) -> bytes:
        if self._is_custom:
            return encoding.custom_list_head(self._list_name, self._api_version, ListMeta.of(listing))
        return encoding.list_head(self._list_name, self._api_version, ListMeta.of(listing))

    def frame(self, type: str, obj: Object) -> bytes:
        """Return an event with the whole object."""
        return encoding.frame(type, obj.wire())

    def bookmark(self, revision: Revision, *, initial_events_end: bool = False) -> bytes:
        """Return an encoded BOOKMARK event of this kind."""
        return encoding.frame(
            "BOOKMARK",
            encoding.bookmark(self._name, self._api_version, revision, initial_events_end=initial_events_end),
        )


class Partial:
    """Presents only the metadata of objects (`PartialObjectMetadata`), for clients such as the garbage collector."""

    def __init__(self, kind: Kind, form: Form) -> None:
        """Create a presentation of `kind` as `form`. The kind of `form` is that of single objects or that of lists."""
        self._kind = kind
        self._form = form
        self._type_meta = encoding.type_meta("PartialObjectMetadata", form.api_version)

    @property
    def following(self) -> Partial:
        """The presentation itself."""
        return self

    def one(self, obj: Object) -> bytes:
        """Return the encoded metadata of an object."""
        if self._form.kind != "PartialObjectMetadata":
            raise NotAcceptable(
                f"you requested {self._form.kind}, but the requested object is not a list ({_go_type(self._kind)})"
            )
        return self._partial(obj) + b"\n"

    def list(self, listing: Listing) -> Iterator[bytes]:
        """Yield an encoded list of objects' metadata.

        In contrast to the items of other lists, the items of metadata lists contain kind and apiVersion.
        """
        if self._form.kind != "PartialObjectMetadataList":
            raise NotAcceptable(
                f"you requested {self._form.kind}, but the requested object is a list ({_go_type(self._kind)}List)"
            )
        head = encoding.list_head(self._form.kind, self._form.api_version, ListMeta.of(listing))
        return encoding.pieces(head, (self._partial(obj) for obj in listing.objects))

    def frame(self, type: str, obj: Object) -> bytes:
        """Return an encoded event with the object's metadata."""
        return encoding.frame(type, self._partial(obj))

    def bookmark(self, revision: Revision, *, initial_events_end: bool = False) -> bytes:
        """Return a BOOKMARK event of this form, because the metadata client rejects any other form (KEP-3157)."""
        name, version = "PartialObjectMetadata", self._form.api_version
        return encoding.frame(
            "BOOKMARK", encoding.bookmark(name, version, revision, initial_events_end=initial_events_end)
        )

    def _partial(self, obj: Object) -> bytes:
        return b'%b"metadata":%b}' % (self._type_meta, encoding.metadata(obj))


def _go_type(kind: Kind) -> str:
    """Return the name of the kind's internal Go type, which Kubernetes' error messages contain."""
    if kind.is_custom:
        return "*unstructured.Unstructured"
    group = kind.storage.group.partition(".")[0] or "core"
    return f"*{group}.{kind.name}"


_ENTRIES = 1024


class Presentations:
    """Creates presentations, and caches them."""

    def __init__(self, clock: Clock) -> None:
        """Create the cache of presentations; ages in tables are computed with `clock`."""
        self._clock = clock
        self._listings = Listings()
        self._made: BoundedCache[tuple[Kind, GroupVersionKind, Form, str], Presentation] = BoundedCache(
            "presentations", entries=_ENTRIES
        )

    def of(self, kind: Kind, shown: GroupVersionKind, form: Form = AS_IS, include: str = "") -> Presentation:
        """Return the presentation of `kind` as `form`.

        `include` is the part of the object that each table row contains. `shown` is the kind of the responses: `kind`
        itself, or the kind of a subresource, such as Scale.
        """
        presentation = self._made.get((kind, shown, form, include))
        if presentation is None:
            presentation = self._make(kind, shown, form, include)
            self._made.put((kind, shown, form, include), presentation)
        return presentation

    def _make(self, kind: Kind, shown: GroupVersionKind, form: Form, include: str) -> Presentation:
        if form == AS_IS:
            return Plain(kind, self._listings)
        if form.kind == "Table":
            return Table(kind, form, kind.printer_of(shown), include, self._clock)
        return Partial(kind, form)
