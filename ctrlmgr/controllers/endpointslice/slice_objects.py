"""Builds EndpointSlice objects: names, labels, owners, and the encoded body.

Guarantees:
- A body has Go's encoding: fields are in Go's order, labels and annotations are sorted, and empty lists are encoded as
  `null`.
- Every write increments the generation (`pkg/registry/discovery/endpointslice`). The written slice keeps all finalizers
  of the current slice.
- A slice has all labels of its Service, except labels that identify the owner of a slice (`setEndpointSliceLabels` in
  Kubernetes' `k8s.io/endpointslice/utils.go`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.core import Service
from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME
from ctrlmgr.api.object import Object, ObjectMeta, OwnerReference
from ctrlmgr.api.resource import ENDPOINT_SLICES
from ctrlmgr.controllers.endpoints.controller import HEADLESS, TRIGGER_TIME
from ctrlmgr.controllers.endpoints.trigger_time import format_trigger_time
from ctrlmgr.controllers.endpointslice.slice_packing import Draft

MANAGER = "endpointslice-controller.k8s.io"
"""The value of the label `MANAGED_BY` on slices of Services with a selector."""

_LONGEST_NAME = 253
_HEAD = b'{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":'
_RESERVED = frozenset((SERVICE_NAME, MANAGED_BY, HEADLESS))

_encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_take_metadata = msgspec.json.Decoder(_Metadata).decode


class Appearance(NamedTuple):
    """The part of the metadata that all slices of one Service or Endpoints object share.

    A new slice gets the annotations in this metadata. An existing slice also keeps its other
    annotations.
    """

    namespace: str
    prefix: str
    labels: dict[str, str]
    annotations: dict[str, str]
    owner: OwnerReference


def appearance_of(service: Object, trigger_time: int | None) -> Appearance:
    """Return the shared metadata of the slices of `service`; `trigger_time` is in microseconds since 1970."""
    annotations = {} if trigger_time is None else {TRIGGER_TIME: format_trigger_time(trigger_time)}
    return Appearance(
        service.namespace, name_prefix(service.name), desired_labels(service), annotations, owner("Service", service)
    )


def owner(kind: str, obj: Object) -> OwnerReference:
    """Return the controller owner reference to an object of the API version v1."""
    return OwnerReference("v1", kind, obj.name, obj.uid, controller=True, block_owner_deletion=True)


def name_prefix(name: str) -> str:
    """Return the prefix of the names of an object's slices (`getEndpointSlicePrefix`)."""
    return f"{name}-" if len(name) < _LONGEST_NAME else name


def desired_labels(service: Object) -> dict[str, str]:
    """Return the labels of the slices of `service`, sorted by key."""
    labels = {key: value for key, value in service.labels.items() if key not in _RESERVED}
    labels |= {SERVICE_NAME: service.name, MANAGED_BY: MANAGER}
    if service.view(Service).is_headless:
        labels[HEADLESS] = ""
    return dict(sorted(labels.items()))


def new_slice(draft: Draft, appearance: Appearance, name: str) -> Object:
    """Return the slice to create for a draft."""
    metadata = ObjectMeta(
        name=name,
        generate_name=appearance.prefix,
        namespace=appearance.namespace,
        generation=1,
        labels=appearance.labels,
        annotations=appearance.annotations or None,
        owner_references=[appearance.owner],
    )
    return Object(ENDPOINT_SLICES, _body(_encode(metadata), draft))


def changed_slice(draft: Draft, appearance: Appearance) -> Object:
    """Return the updated slice for a draft, at the revision of its `current` slice."""
    current = draft.current
    assert current is not None
    changes: dict[str, Any] = {
        "generation": (current.metadata.generation or 0) + 1,
        "labels": appearance.labels,
        "annotations": _annotations({} if draft.renew else current.annotations, appearance.annotations),
    }
    if draft.renew:
        changes["owner_references"] = [appearance.owner]
    bare = Object(ENDPOINT_SLICES, b"".join((_HEAD, _take_metadata(current.body).metadata, b"}")))
    metadata = _take_metadata(bare.with_metadata(**changes).body).metadata
    return Object(ENDPOINT_SLICES, _body(metadata, draft), current.revision)


def _annotations(current: Mapping[str, str], desired: Mapping[str, str]) -> dict[str, str] | None:
    """Return the annotations `current` and `desired` together, without the old trigger time."""
    kept = {key: value for key, value in current.items() if key != TRIGGER_TIME}
    return dict(sorted({**kept, **desired}.items())) or None


def _body(metadata: bytes | msgspec.Raw, draft: Draft) -> bytes:
    endpoints = _encode(draft.endpoints or None)
    ports = _encode(draft.ports or None)
    head = f',"addressType":"{draft.address_type}","endpoints":'.encode()
    return b"".join((_HEAD, metadata, head, endpoints, b',"ports":', ports, b"}"))
