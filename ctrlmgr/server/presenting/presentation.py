"""How objects of one kind are shown to one kind of reader: as themselves, by their metadata alone, or as a table.

Guarantees: a presentation is immutable and shared by all who asked for the same; two watchers with one presentation
get the same bytes for the same event.
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
    """What answers are made with."""

    @property
    def following(self) -> Presentation:
        """What a watch goes on with after its first frame: itself, unless that one is special."""

    def one(self, obj: Object) -> bytes:
        """Return an object, with a newline; raises `NotAcceptable` where only lists can be shown."""

    def list(self, listing: Listing) -> Iterable[bytes]:
        """Return a list in pieces, a sequence if they are all there; raises `NotAcceptable` where it shows none."""

    def frame(self, type: str, obj: Object) -> bytes:
        """Return an event of a watch: ADDED, MODIFIED or DELETED."""

    def bookmark(self, revision: Revision, *, initial_events_end: bool = False) -> bytes:
        """Return a BOOKMARK event."""


class Plain:
    """Objects as they are."""

    def __init__(self, kind: Kind, listings: Listings | None = None) -> None:
        """Show objects of `kind`, in the version it serves; `listings`, shared with others, makes lists of them."""
        self._listings = listings or Listings()
        self._is_custom = kind.is_custom
        self._name = kind.name
        self._list_name = kind.list_name
        self._api_version = kind.gvk.api_version
        self._type_meta = encoding.type_meta(kind.name, kind.gvk.api_version)

    @property
    def following(self) -> Plain:
        """Itself."""
        return self

    def one(self, obj: Object) -> bytes:
        """Return an object as it is."""
        return obj.wire() + b"\n"

    def list(self, listing: Listing) -> Iterable[bytes]:
        """Return a list of this kind."""
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
        """Return a BOOKMARK of this kind."""
        return encoding.frame(
            "BOOKMARK",
            encoding.bookmark(self._name, self._api_version, revision, initial_events_end=initial_events_end),
        )


class Partial:
    """Nothing but metadata: `PartialObjectMetadata`, for readers such as a garbage collector."""

    def __init__(self, kind: Kind, form: Form) -> None:
        """Show objects of `kind` as `form`, whose kind says whether single objects or lists were asked for."""
        self._kind = kind
        self._form = form
        self._type_meta = encoding.type_meta("PartialObjectMetadata", form.api_version)

    @property
    def following(self) -> Partial:
        """Itself."""
        return self

    def one(self, obj: Object) -> bytes:
        """Return the metadata of an object."""
        if self._form.kind != "PartialObjectMetadata":
            raise NotAcceptable(
                f"you requested {self._form.kind}, but the requested object is not a list ({_go_type(self._kind)})"
            )
        return self._partial(obj) + b"\n"

    def list(self, listing: Listing) -> Iterator[bytes]:
        """Yield a list of the metadata of objects; its items, unlike others', say what they are."""
        if self._form.kind != "PartialObjectMetadataList":
            raise NotAcceptable(
                f"you requested {self._form.kind}, but the requested object is a list ({_go_type(self._kind)}List)"
            )
        head = encoding.list_head(self._form.kind, self._form.api_version, ListMeta.of(listing))
        return encoding.pieces(head, (self._partial(obj) for obj in listing.objects))

    def frame(self, type: str, obj: Object) -> bytes:
        """Return an event with the metadata of an object."""
        return encoding.frame(type, self._partial(obj))

    def bookmark(self, revision: Revision, *, initial_events_end: bool = False) -> bytes:
        """Return a BOOKMARK of this form: the metadata client refuses any other (KEP-3157)."""
        name, version = "PartialObjectMetadata", self._form.api_version
        return encoding.frame(
            "BOOKMARK", encoding.bookmark(name, version, revision, initial_events_end=initial_events_end)
        )

    def _partial(self, obj: Object) -> bytes:
        return b'%b"metadata":%b}' % (self._type_meta, encoding.metadata(obj))


def _go_type(kind: Kind) -> str:
    """Name a kind's Go type as Kubernetes does where it says what it has: the internal one."""
    if kind.is_custom:
        return "*unstructured.Unstructured"
    group = kind.storage.group.partition(".")[0] or "core"
    return f"*{group}.{kind.name}"


_ENTRIES = 1024


class Presentations:
    """Makes presentations, as a rule each once."""

    def __init__(self, clock: Clock) -> None:
        """Take the time for ages from `clock`."""
        self._clock = clock
        self._listings = Listings()
        self._made: BoundedCache[tuple[Kind, GroupVersionKind, Form, str], Presentation] = BoundedCache(
            "presentations", entries=_ENTRIES
        )

    def of(self, kind: Kind, shown: GroupVersionKind, form: Form = AS_IS, include: str = "") -> Presentation:
        """Return how to show objects of `kind` as `form`; `include` is what rows of tables have of them.

        `shown` is what they are seen as: their own kind, or another for some subresources, such as Scale.
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
