"""Reads: one object, lists and their pages, and the start of a watch, at every revision that the log still has.

Guarantees (apiserver `pkg/storage/cacher` and `etcd3`, KEP-2340):
- A read with the resourceVersion "" returns the newest state that any process has written. A read with "0" returns the
  state in memory. A read with any other number returns a state that is not older than this revision or, if the client
  requests `Exact`, the state at this revision. A read of a future revision waits up to three seconds.
- All pages of a list show the state of the first page. If the state of the first page has been compacted, the 410 error
  contains a token with which the client can continue with the newest state.
- A read of a namespace never returns objects of a deleted namespace with the same name; a read of revisions of the
  deleted namespace raises `Expired`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple, Protocol

from ctrlmgr.api.field import invalid
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Revision
from ctrlmgr.engine.api_errors import list_expired, not_found, too_large_version
from ctrlmgr.engine.calls.call import CallInputs
from ctrlmgr.engine.conversion import converting, shown, shown_all
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.operations import REFRESH, Await, Listing, Operation, Read, Target
from ctrlmgr.engine.paging import NEWEST, Place, decode_continue, encode_continue
from ctrlmgr.engine.request_options import EXACT, GetOptions, ListOptions
from ctrlmgr.engine.strategy import State
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.engine.watch_cache.log_history import History, read_history
from ctrlmgr.engine.watch_cache.resource_store import EVERYWHERE, Span, path_of
from ctrlmgr.engine.watch_cache.watch import Selection, Start
from ctrlmgr.errors import BadRequest, Expired, UnknownError
from ctrlmgr.eventlog.event import EventType, Snapshot
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.golang.go_numbers import parse_uint

PATIENCE = 3.0
"""The maximum wait for a future revision, in seconds (`blockTimeout`)."""

_BATCH = 1000
"""The number of namespace events that are read from the log in one call."""


class _Objects(Protocol):
    """A collection of objects that can be counted and iterated repeatedly."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Object]: ...


class _Range(NamedTuple):
    """The collection of a paged list: the objects in a span of paths, at a revision."""

    objects: _Objects
    revision: Revision


def get(inputs: CallInputs, target: Target, options: GetOptions) -> Operation[Object]:
    """Return an object in the served version; raises `NotFound` if the object does not exist."""
    state = inputs.view
    kind, namespace, name, _ = target
    version = options.resource_version
    if not version:
        yield REFRESH
    elif version != "0":
        yield from _not_older(state, _parse(version, UnknownError, ""))
    obj = state.get(kind.storage, Key(namespace, name))
    if obj is None:
        raise not_found(kind.resource, name)
    if kind.calls_out:
        return (yield from shown(kind, obj, inputs, anew=True))
    return kind.from_storage(obj) if kind.from_storage is not None else obj


def list_objects(
    cacher: Cacher, log: EventLog, kind: Kind, namespace: str | None, options: ListOptions, random: Random
) -> Operation[Listing]:
    """Return a list, or one page of a list."""
    selection = Selection(kind, namespace, options.labels, options.fields)
    span = _span(selection)
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        place = decode_continue(options.continue_token)
        base = f"{namespace}/" if namespace and kind.namespaced else ""
        found = yield from _continued(cacher, log, kind, span.after(base + place.start), place)
    else:
        found = yield from _first(cacher, log, kind, span, options)
    limit = options.limit if options.resource_version != "0" else 0
    if kind.calls_out:
        return (yield from _converted_page(found, selection, limit, CallInputs(cacher, random)))
    page = _page(found, selection, limit)
    return page._replace(objects=_shown(selection, page.objects))


def start_watch(
    cacher: Cacher, log: EventLog, kind: Kind, namespace: str | None, options: ListOptions, random: Random
) -> Operation[Start]:
    """Return the start of a watch, with the initial objects if the client requests them.

    Raises `RequestTimeout` if the log does not reach the revision of the initial objects in time. Raises `Expired` if
    the start revision of the watch has been compacted.
    """
    selection = Selection(kind, namespace, options.labels, options.fields)
    version, initial = options.resource_version, options.send_initial_events
    revision = _parse(version, UnknownError, "") if version else 0
    if not version:
        yield REFRESH
    elif initial:
        yield from _not_older(cacher, revision)
    if initial is False or (initial is None and revision):
        yield from _retained(cacher, log, kind, namespace, revision or cacher.revision)
        return Start(selection, (), revision or cacher.revision, False)
    objects = cacher.span(kind.storage, _span(selection))
    revision = cacher.revision
    if kind.calls_out:
        found: Sequence[Object] = yield from _converted(objects, selection, CallInputs(cacher, random))
    else:
        found = [selection.shown(obj) for obj in objects if selection.matches(obj)]
    return Start(selection, found, revision, bool(initial))


def history(log: EventLog, selection: Selection, revision: Revision, limit: int) -> Operation[History]:
    """Return changes of the selection's kind that are older than the changes in the cacher.

    Raises `Expired` if such changes have been compacted.
    """
    result: History = yield Read(lambda: read_history(log, selection.kind.storage, revision, limit))
    return result


def _parse(version: str, error: type[BadRequest] | type[UnknownError], prefix: str) -> Revision:
    try:
        return parse_uint(version)
    except ValueError as problem:
        raise error(prefix + invalid("resourceVersion", version, str(problem)).message) from problem


def _not_older(state: State, revision: Revision) -> Operation[None]:
    if state.revision < revision:
        yield Await(revision, PATIENCE)
        if state.revision < revision:
            raise too_large_version(revision, state.revision)


def _span(selection: Selection) -> Span:
    """Return a span that contains all selected objects; the span may also contain objects that are not selected."""
    fields, namespace, namespaced = selection.fields, selection.namespace, selection.kind.namespaced
    if namespaced and namespace is None:
        namespace = fields.namespace
    if fields.name and (namespace or not namespaced):
        return Span.at(path_of(Key(namespace or "", fields.name)))
    return Span.of(namespace) if namespaced else EVERYWHERE


def _first(cacher: Cacher, log: EventLog, kind: Kind, span: Span, options: ListOptions) -> Operation[_Range]:
    version, match = options.resource_version, options.resource_version_match
    if not version:
        yield REFRESH
    elif version != "0":
        revision = _parse(version, BadRequest, "invalid resource version: ")
        yield from _not_older(cacher, revision)
        # clients without a match option expect this
        if match == EXACT or (not match and options.limit > 0 and revision):
            try:
                return (yield from _exactly(cacher, log, kind, span, revision))
            except Expired as expired:
                raise list_expired(expired) from expired
    return _Range(cacher.span(kind.storage, span), cacher.revision)


def _continued(cacher: Cacher, log: EventLog, kind: Kind, span: Span, place: Place) -> Operation[_Range]:
    if place.revision == NEWEST:
        yield REFRESH
        return _Range(cacher.span(kind.storage, span), cacher.revision)
    yield from _not_older(cacher, place.revision)
    try:
        return (yield from _exactly(cacher, log, kind, span, place.revision))
    except Expired as expired:
        raise list_expired(expired, encode_continue(place._replace(revision=-1))) from expired


def _retained(cacher: Cacher, log: EventLog, kind: Kind, namespace: str | None, revision: Revision) -> Operation[None]:
    """Raise `Expired` if the revision is compacted, or precedes the creation of the current namespace.

    A revision is compacted if the log has removed events before it, or if it is older than the oldest revision that
    clients may read.

    A read of a compacted revision is refused even if this cacher still holds the revision. Therefore all servers return
    the same answer, also after a restart.
    """
    if revision >= cacher.revision:
        return
    floor = cacher.oldest_for_clients()
    if revision >= floor:
        floor = yield Read(lambda: log.floor(kind.storage))
    if revision < floor:
        raise Expired(revision, floor)
    if kind.namespaced and namespace:
        yield from _of_this_namespace(cacher, log, namespace, revision)


def _of_this_namespace(cacher: Cacher, log: EventLog, namespace: str, revision: Revision) -> Operation[None]:
    """Raise `Expired` if a namespace with this name was deleted after `revision`.

    The deleted namespace may have belonged to another tenant.
    """
    now = cacher.get(NAMESPACES, Key("", namespace))
    if now is None or now.revision <= revision:
        return
    began: Revision = yield Read(lambda: _beginning(log, now, revision))
    if began > revision:
        raise Expired(revision, began)


def _beginning(log: EventLog, namespace: Object, revision: Revision) -> Revision:
    """Return the revision at which the last earlier namespace with this name was deleted.

    The function returns `revision` if no namespace with this name was deleted later.
    """
    then = log.get(NAMESPACES, namespace.key, at=revision)
    if then is not None and then.uid == namespace.uid:
        return revision
    began = revision
    while events := log.events_after(revision, resource=NAMESPACES, limit=_BATCH):
        gone = [each for each in events if each.key == namespace.key and each.type is EventType.DELETED]
        began, revision = max([began, *(each.revision for each in gone)]), events[-1].revision
        if len(events) < _BATCH:
            break
    return began


def _exactly(cacher: Cacher, log: EventLog, kind: Kind, span: Span, revision: Revision) -> Operation[_Range]:
    namespace = span.start.partition("/")[0] if kind.namespaced and span.start else None
    yield from _retained(cacher, log, kind, namespace, revision)
    past = cacher.at(revision, kind.storage, span)
    if past is not None:
        return _Range(past, revision)
    snapshot: Snapshot = yield Read(lambda: log.snapshot(kind.storage, namespace=namespace, at=revision))
    there = sorted((path, obj) for obj in snapshot.objects if (path := path_of(obj.key)) in span)
    return _Range([obj for _, obj in there], revision)


def _page(found: _Range, selection: Selection, limit: int) -> Listing:
    """Return a page of objects in their stored form."""
    objects, revision, selected = found.objects, found.revision, selection.filter
    if limit <= 0:
        return Listing(revision, list(objects if selected is None else filter(selected, objects)))
    if selected is None:
        page, left = list(islice(objects, limit)), len(objects) - limit
    else:
        page, left = _selected(objects, selected, limit)
    if left <= 0:
        return Listing(revision, page)
    start = path_of(page[-1].key)
    if selection.kind.namespaced and selection.namespace:
        start = start.removeprefix(f"{selection.namespace}/")
    token = encode_continue(Place(revision, start + "\0"))
    return Listing(revision, page, token, left if selected is None else None)


def _converted_page(found: _Range, selection: Selection, limit: int, inputs: CallInputs) -> Operation[Listing]:
    """Return a page of objects of a kind that a webhook converts."""
    if not selection.fields.is_empty:  # a field selector needs the served version of every object
        yield from shown_all(selection.kind, found.objects, inputs)
    page = yield from converting(lambda: _page(found, selection, limit), inputs)
    return page._replace(objects=(yield from shown_all(selection.kind, page.objects, inputs)))


def _converted(objects: Iterable[Object], selection: Selection, inputs: CallInputs) -> Operation[Sequence[Object]]:
    """Return the selected objects of a kind that a webhook converts."""
    found = list(objects)
    if not selection.fields.is_empty:
        yield from shown_all(selection.kind, found, inputs)
    matching = yield from converting(lambda: [obj for obj in found if selection.matches(obj)], inputs)
    return (yield from shown_all(selection.kind, matching, inputs))


def _selected(objects: _Objects, selected: Callable[[Object], bool], limit: int) -> tuple[list[Object], int]:
    """Return the first `limit` selected objects, and the number of all objects after the last returned object."""
    page: list[Object] = []
    for index, obj in enumerate(objects):
        if selected(obj):
            page.append(obj)
            if len(page) == limit:
                return page, len(objects) - index - 1
    return page, 0


def _shown(selection: Selection, objects: Sequence[Object]) -> Sequence[Object]:
    if selection.kind.from_storage is None:
        return objects
    return [selection.shown(obj) for obj in objects]
