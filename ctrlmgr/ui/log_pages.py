"""Returns the events of the log in pages, from which `inspection.copying` creates local copies.

A page consists of JSON lines, each `{"NAME": {…}}` with the name of a table. The first line of a page is `log`, with
the last revision of the page (`next`) and of the log (`head`). Unchanged rows of the log's tables follow: `epoch`,
`import`, `floor`, `object`, `event`, `reconcile` (with its `triggers`) and `term`. The last page has the rows of
`failure` that the user may see (`ui.failures_page`).

Guarantees:
- A page has at most `_MOST` events, whose total size is at most `_ROOM` bytes, unless a single event is larger.
- An event is included only if the user may `list` (or `get`) all objects of its resource in its namespace. `hidden` is
  the number of events that were left out. In a query for one resource, `hidden` is 0, because the number would reveal
  events of that resource. If a reconcile also wrote events that the user may not see, the reconcile's key and message
  are removed.
- Values of a Secret are included only if the user may `get` the Secrets of its namespace.
- If a namespace was deleted and created again, only events of the current namespace are included
  (`visibility.PastVisibility`).
- Hashes, from which hidden data could be guessed, are included only for users that may see everything.
- The digest `rights` changes whenever the user's permissions for the log's data change, and differs between users.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.resource import LEASES, NAMESPACES, SECRETS, Resource, Revision
from ctrlmgr.errors import BadRequest
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.secret_redaction import masked
from ctrlmgr.ui.failures_page import seen_failures
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.visibility import Visibility

_MOST: Final = 2000
_ROOM: Final = 4 << 20
_ASKED: Final = 50
"""Maximum number of running reconciles whose results one request may ask for."""

_PLACE = "CASE WHEN o.resource = 'namespaces' THEN o.name ELSE o.namespace END"
_PLACES = f"SELECT DISTINCT o.resource, {_PLACE} FROM object AS o ORDER BY 1, 2"
_SIZES = """
SELECT e.revision, length(e.body) FROM event AS e JOIN object AS o ON o.id = e.object_id
WHERE e.revision > :after AND e.revision <= :until AND (:resource = '' OR o.resource = :resource)
ORDER BY e.revision LIMIT :most"""
_EVENT_FIELDS = (
    "revision",
    "object_id",
    "previous",
    "type",
    "recorded_at",
    "actor",
    "user_agent",
    "term",
    "reconcile_id",
    "append_id",
    "parent_hash",
    "hash",
    "body",
)
_OBJECT_FIELDS = ("id", "resource", "namespace", "name", "create_revision")
_EVENTS = f"""
SELECT {", ".join(f"e.{name}" for name in _EVENT_FIELDS)}, {", ".join(f"o.{name}" for name in _OBJECT_FIELDS)}
FROM event AS e JOIN object AS o ON o.id = e.object_id
WHERE e.revision > :after AND e.revision <= :until AND (:resource = '' OR o.resource = :resource)
ORDER BY e.revision"""
_RUN_FIELDS = ("id", "controller", "key", "attempt", "started_at", "duration", "outcome", "message")
_RUNS = f"SELECT {', '.join(_RUN_FIELDS)} FROM reconcile WHERE id IN ({{ids}}) ORDER BY id"
_TRIGGERS = "SELECT reconcile_id, revision FROM reconcile_trigger WHERE reconcile_id IN ({ids}) ORDER BY 1, 2"
_BESIDE = f"""
SELECT e.reconcile_id, o.resource, {_PLACE}, min(e.revision), max(e.revision), 1
FROM event AS e JOIN object AS o ON o.id = e.object_id
WHERE e.reconcile_id IN ({{ids}}) AND e.reconcile_id <> 0 AND e.revision <= {{until}} GROUP BY 1, 2, 3
UNION
SELECT t.reconcile_id, o.resource, {_PLACE}, min(e.revision), max(e.revision), 0 FROM reconcile_trigger AS t
JOIN event AS e ON e.revision = t.revision JOIN object AS o ON o.id = e.object_id WHERE t.reconcile_id IN ({{ids}})
GROUP BY 1, 2, 3"""
_LAST_OF_LEASE = f"""
SELECT coalesce(max(e.revision), 0) FROM event AS e JOIN object AS o ON o.id = e.object_id
WHERE o.resource = '{LEASES}' AND o.namespace = :namespace AND o.name = :name"""
_EPOCHS = "SELECT uuid, after_revision, parent_hash, started_at, reason FROM log_epoch ORDER BY after_revision"
_EPOCH_FIELDS = ("uuid", "after_revision", "parent_hash", "started_at", "reason")

_encode = msgspec.json.encode


class _RequestedRange(NamedTuple):
    """The requested range of the log, for one resource, or for all resources if it is empty."""

    after: Revision
    until: Revision
    resource: str


class LogPages:
    """Reads pages of the log."""

    def __init__(self, reader: Reader) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader

    def page(self, parameters: Parameters) -> bytes:
        """Return the page of the log `after` a revision, optionally for one `resource` and `until` another revision.

        `reconciles` are the IDs of reconciles that were still running in an earlier page; the page includes them again.
        """
        after = parameters.number("after", 0)
        resource, until = parameters.text("resource", ""), parameters.number("until", (1 << 63) - 1)
        again = _numbers(parameters.text("reconciles", ""))

        def answer(database: Database) -> bytes:
            head = self._reader.head(database)
            view = _View(database, parameters.visibility, head)
            lines = view.lines(_RequestedRange(after, min(until, head), resource), again)
            return b"".join(_encode(line) + b"\n" for line in lines)

        return self._reader.ask(answer)


class _View:
    """The part of a log that one user may see, up to a revision; an instance is created for one page."""

    def __init__(self, database: Database, visibility: Visibility, head: Revision) -> None:
        self._database = database
        self._visibility = visibility
        self._past = visibility.past(database)
        self._head = head
        self._whole = not visibility.limit and visibility.gets(SECRETS, "")

    def lines(self, requested: _RequestedRange, again: Sequence[int]) -> Iterator[Mapping[str, Any]]:
        """Return the lines of the page.

        Rows that compaction may remove are read first, and the compaction floors afterwards.
        """
        last, is_full = self._last(requested)
        found = self._rows(_EVENTS, (*_EVENT_FIELDS, *_OBJECT_FIELDS), **requested._replace(until=last)._asdict())
        seen = [row for row in found if self._sees(row["resource"], _place_of(row), row["revision"])]
        runs = {row["reconcile_id"] for row in seen} - {0}
        reconciles = list(self._reconciles(runs, again))
        hidden = 0 if requested.resource else len(found) - len(seen)
        yield {"log": self._place(last if is_full else requested.until, hidden)}
        yield from ({"epoch": row} for row in self._epochs())
        yield from self._floors()
        yield from ({"object": {name: row[name] for name in _OBJECT_FIELDS}} for row in seen)
        yield from ({"event": self._event(row)} for row in seen)
        yield from reconciles
        yield from self._terms()
        if not is_full and not requested.resource:
            yield from ({"failure": each} for each in seen_failures(self._database, self._visibility, ended=True))

    def _rows(self, statement: str, names: Sequence[str], **parameters: Any) -> list[dict[str, Any]]:
        return [dict(zip(names, row, strict=True)) for row in self._database.query(statement, parameters).rows]

    def _last(self, requested: _RequestedRange) -> tuple[Revision, bool]:
        """Return the last revision that fits on the page, and whether more events may follow."""
        rows = self._database.query(_SIZES, {**requested._asdict(), "most": _MOST}).rows
        size = last = 0
        for revision, length in rows:
            size += length
            if last and size > _ROOM:
                return last, True
            last = revision
        return last or requested.after, len(rows) == _MOST

    def _sees(self, resource: str, place: str, revision: Revision) -> bool:
        return self._whole or self._past.lists(Resource.parse(resource), place, revision)

    def _place(self, last: Revision, hidden: int) -> Mapping[str, Any]:
        rows = self._database.query("SELECT uuid, revision, hash FROM log_head WHERE id = 1").rows
        uuid, newest, hash_ = rows[0]
        is_its = self._whole and newest == last
        return {
            "uuid": uuid,
            "head": self._head,
            "next": last,
            "rights": self._rights(),
            "hidden": hidden,
            "hash": bytes(hash_).hex() if is_its else "",
        }

    def _rights(self) -> str:
        """Return a digest that changes when the user's permissions for the log's data change."""
        digest = hashlib.sha256(_encode(self._visibility.user.name))
        if self._whole:
            return digest.hexdigest()
        for name, place in self._database.query(_PLACES).rows:
            resource = Resource.parse(name)
            everywhere = self._visibility.lists(resource, "")
            if everywhere or self._visibility.lists(resource, place):
                values = resource == SECRETS and self._visibility.gets(SECRETS, place)
                since = self._past.hidden_until(resource, place), values and self._past.unread_until(SECRETS, place)
                digest.update(_encode((name, "*" if everywhere and not values else place, values, since)))
        return digest.hexdigest()

    def _epochs(self) -> Iterator[Mapping[str, Any]]:
        for row in self._rows(_EPOCHS, _EPOCH_FIELDS):
            if row["after_revision"] <= self._head:
                yield {**row, "parent_hash": self._hash(row["parent_hash"])}

    def _floors(self) -> Iterator[Mapping[str, Any]]:
        for resource, floor in self._database.query("SELECT resource, floor FROM compaction_floor").rows:
            yield {"floor": {"resource": resource, "floor": min(floor, self._head)}}
        for after, last in self._database.query("SELECT after_revision, last_revision FROM log_import").rows:
            if after < self._head:
                yield {"import": {"after_revision": after, "last_revision": min(last, self._head)}}

    def _terms(self) -> Iterator[Mapping[str, Any]]:
        for lease, term in self._database.query("SELECT lease, term FROM lease_term").rows:
            if self._whole or self._sees_lease(lease):
                yield {"term": {"lease": lease, "term": term}}

    def _sees_lease(self, lease: str) -> bool:
        resource, _, place = lease.partition("/")
        namespace, _, name = place.partition("/")
        if resource != str(LEASES) or not self._visibility.lists(LEASES, namespace):
            return False
        last = self._database.query(_LAST_OF_LEASE, {"namespace": namespace, "name": name}).rows[0][0]
        return self._past.lists(LEASES, namespace, last) or not self._past.hidden_until(LEASES, namespace)

    def _event(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        body = row["body"]
        if row["resource"] == str(SECRETS) and not self._reads(row["namespace"], row["revision"]):
            body = _encode(masked(SECRETS, msgspec.json.decode(body))).decode()
        fields = {name: row[name] for name in _EVENT_FIELDS}
        parent = row["parent_hash"]
        hashes = {"hash": self._hash(row["hash"]), "parent_hash": None if parent is None else self._hash(parent)}
        return {**fields, **hashes, "body": body}

    def _reads(self, namespace: str, revision: Revision) -> bool:
        """Return whether the user may see the values of a Secret at a revision."""
        return self._whole or self._past.gets(SECRETS, namespace, revision)

    def _hash(self, value: Any) -> str:
        return bytes(value).hex() if self._whole else ""

    def _reconciles(self, runs: Iterable[int], again: Sequence[int]) -> Iterator[Mapping[str, Any]]:
        numbers = sorted({*runs, *again})
        if not numbers:
            return
        ids = ", ".join(map(str, numbers))
        shown, unseen = self._seen_of(ids, numbers)
        triggers: dict[int, list[Revision]] = {}
        for run, revision in self._database.query(_TRIGGERS.format(ids=ids)).rows:
            triggers.setdefault(run, []).append(revision)
        for row in self._rows(_RUNS.format(ids=ids), _RUN_FIELDS):
            if row["id"] in shown:
                visible = {**row, "key": "", "message": ""} if row["id"] in unseen else row
                yield {"reconcile": {**visible, "triggers": triggers.get(row["id"], [])}}

    def _seen_of(self, ids: str, numbers: Sequence[int]) -> tuple[set[int], set[int]]:
        """Return the reconciles that wrote an event that the user may see.

        The function also returns which of the reconciles wrote events that the user may not see.
        """
        if self._whole:
            return set(numbers), set()
        shown, unseen = set(), set()
        rows = self._database.query(_BESIDE.format(ids=ids, until=self._head)).rows
        for run, resource, place, first, last, is_written in rows:
            if not self._sees(resource, place, first):
                unseen.add(run)
            if is_written and self._sees(resource, place, last):
                shown.add(run)
        return shown, unseen


def _place_of(row: Mapping[str, Any]) -> str:
    """Return the namespace in which permissions for an object are checked; for a Namespace, this is its own name."""
    return str(row["name"] if row["resource"] == str(NAMESPACES) else row["namespace"])


def _numbers(text: str) -> list[int]:
    numbers = text.split(",") if text else []
    if len(numbers) > _ASKED or not all(each.isascii() and each.isdecimal() and len(each) < 20 for each in numbers):
        raise BadRequest(f"reconciles must be a list of at most {_ASKED} numbers")
    return [int(each) for each in numbers if int(each) < 1 << 63]
