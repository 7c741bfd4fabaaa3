"""ControllerRevisions: the history of the template of a StatefulSet or DaemonSet.

Guarantees, as in Kubernetes (`pkg/controller/history/controller_history.go`):
- A revision's name consists of its owner's name and a hash. If an equal revision already has the generated name, that
  revision is used. If a different object already has the generated name, a collision is counted, and the next hash is
  different.
- Two revisions are equal if their data is equal.
- The data of a revision is a strategic merge patch that replaces the owner's template, encoded as JSON with sorted keys
  and Go's escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.workloads.controlled_pods import created_at
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.errors import AlreadyExists
from ctrlmgr.eventlog import EventLog

CONTROLLER_REVISIONS: Final = Resource("apps", "controllerrevisions")

_LONGEST_PREFIX: Final = 223
"""The maximum number of characters of an owner's name in a revision's name."""

_LARGEST_EXACT: Final = 2**53
"""A float64 can represent every integer up to this integer."""

_encode = msgspec.json.Encoder(order="sorted").encode


def number_of(revision: Object) -> int:
    """Return a revision's number, counted from 1."""
    return int(revision.to_dict().get("revision") or 0)


def data_of(revision: Object) -> Any:
    """Return a revision's data."""
    return revision.to_dict().get("data")


def revision_name(owner: str, hash_: str) -> str:
    """Return the name of a revision from its owner's name and its hash."""
    return f"{owner[:_LONGEST_PREFIX]}-{hash_}"


def template_patch(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that replaces an owner's template with the given template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def patch_bytes(patch: Mapping[str, Any]) -> bytes:
    """Encode a patch like Go's `json.Marshal`: with sorted keys, and with `<`, `>` and `&` escaped."""
    text = _encode(_with_go_numbers(patch))
    for character in (b"<", b">", b"&"):
        text = text.replace(character, b"\\u%04x" % ord(character))
    return text.replace("\u2028".encode(), b"\\u2028").replace("\u2029".encode(), b"\\u2029")


def _with_go_numbers(value: Any) -> Any:
    """Convert JSON numbers like Go's `json.Unmarshal`: to float64 values, written with the fewest possible digits."""
    match value:
        case dict():
            return {name: _with_go_numbers(each) for name, each in value.items()}
        case list():
            return [_with_go_numbers(each) for each in value]
        case int() if abs(value) > _LARGEST_EXACT:
            return int(Decimal(repr(float(value))))
    return value


def in_order(revisions: Iterable[Object]) -> list[Object]:
    """Return the revisions sorted by number, the lowest first.

    Revisions with equal numbers are sorted by creation time, then by name.
    """
    return sorted(revisions, key=lambda each: (number_of(each), created_at(each), each.name))


def equal_to(revision: Object, among: Iterable[Object]) -> list[Object]:
    """Return those revisions in `among` that have the same data as `revision`."""
    data = data_of(revision)
    return [each for each in among if data_of(each) == data]


class NewRevision(NamedTuple):
    """A revision to create; `hash_label` is the label that contains its hash."""

    owner: Owner
    number: int
    data: Mapping[str, Any]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    hash_label: str

    def named(self, hash_: str) -> Object:
        """Return the revision object for a hash, which determines its name."""
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
    """Return a copy of a revision with another number.

    The bytes of the revision's data stay unchanged, because the data is immutable.
    """
    return revision.with_field("revision", number)


def existing(event_log: EventLog, desired: Object, error: AlreadyExists) -> Object:
    """Return the existing object that has the name of `desired`; raises `error` if the object was deleted meanwhile."""
    found = event_log.get(CONTROLLER_REVISIONS, desired.key)
    if found is None:
        raise error
    return found


def set_number(revision: Object, number: int, client: EngineClient) -> Object:
    """Set a revision's number if the number differs; raises the errors of `client` if the write fails."""
    return revision if number_of(revision) == number else client.update(renumbered(revision, number))
