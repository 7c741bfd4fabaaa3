"""ControllerRevisions: the history of what a StatefulSet or a DaemonSet wanted.

Guarantees, Kubernetes' (`pkg/controller/history/controller_history.go`):
- A revision is named by its owner's name and a hash; when another object has that name, the collision is counted and
  the hash taken anew. When it is equal, it is the revision.
- Two revisions are equal when their data is.
- The data is the owner's template as a strategic merge patch that replaces it, as JSON with sorted keys, in Go's
  escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.workloads.claims import Owner
from ctrlmgr.controllers.workloads.pods import created_at
from ctrlmgr.errors import AlreadyExists
from ctrlmgr.eventlog import EventLog

CONTROLLER_REVISIONS: Final = Resource("apps", "controllerrevisions")

_LONGEST_PREFIX: Final = 223
"""Characters of an owner's name that a revision's name may begin with."""

_LARGEST_EXACT: Final = 2**53
"""The largest integer up to which a float64 holds every integer."""

_encode = msgspec.json.Encoder(order="sorted").encode


def number_of(revision: Object) -> int:
    """Return which revision of its owner this is, counted from 1."""
    return int(revision.to_dict().get("revision") or 0)


def data_of(revision: Object) -> Any:
    """Return a revision's data."""
    return revision.to_dict().get("data")


def revision_name(owner: str, hash_: str) -> str:
    """Return the name of the revision of `owner` with a hash."""
    return f"{owner[:_LONGEST_PREFIX]}-{hash_}"


def template_patch(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that gives an owner this template in place of whatever it has."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def patch_bytes(patch: Mapping[str, Any]) -> bytes:
    """Return a patch as Go's `json.Marshal` writes a map: sorted keys, `<`, `>` and `&` escaped."""
    text = _encode(_with_go_numbers(patch))
    for character in (b"<", b">", b"&"):
        text = text.replace(character, b"\\u%04x" % ord(character))
    return text.replace("\u2028".encode(), b"\\u2028").replace("\u2029".encode(), b"\\u2029")


def _with_go_numbers(value: Any) -> Any:
    """Return JSON as Go's `json.Unmarshal` reads it: numbers are float64, written with the fewest digits."""
    match value:
        case dict():
            return {name: _with_go_numbers(each) for name, each in value.items()}
        case list():
            return [_with_go_numbers(each) for each in value]
        case int() if abs(value) > _LARGEST_EXACT:
            return int(Decimal(repr(float(value))))
    return value


def in_order(revisions: Iterable[Object]) -> list[Object]:
    """Return revisions, the oldest first; of equal numbers the one made first, then by name."""
    return sorted(revisions, key=lambda each: (number_of(each), created_at(each), each.name))


def equal_to(revision: Object, among: Iterable[Object]) -> list[Object]:
    """Return those `among` that hold the same data as `revision`."""
    data = data_of(revision)
    return [each for each in among if data_of(each) == data]


class NewRevision(NamedTuple):
    """A revision that may have to be created; `hash_label` is where its hash is, besides its name."""

    owner: Owner
    number: int
    data: Mapping[str, Any]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    hash_label: str

    def named(self, hash_: str) -> Object:
        """Return it under the name that a hash gives it."""
        metadata: dict[str, Any] = {
            "name": revision_name(self.owner.object.name, hash_),
            "namespace": self.owner.object.namespace,
            "labels": {**self.labels, self.hash_label: hash_},
            "ownerReferences": [self.owner.reference()],
        }
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        head = {"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": metadata}
        return Object.from_dict({**head, "data": msgspec.Raw(patch_bytes(self.data)), "revision": self.number})


def renumbered(revision: Object, number: int) -> Object:
    """Return a revision with another number; the bytes of its data, which is immutable, stay as they are."""
    return revision.with_field("revision", number)


def existing(event_log: EventLog, wanted: Object, error: AlreadyExists) -> Object:
    """Return what has the name of `wanted` already; raises `error` if it has gone again."""
    found = event_log.get(CONTROLLER_REVISIONS, wanted.key)
    if found is None:
        raise error
    return found


def set_number(revision: Object, number: int, client: EngineClient) -> Object:
    """Give a revision a number, unless it has it; raises what `client` raises."""
    return revision if number_of(revision) == number else client.update(renumbered(revision, number))
