"""Decides the writes to a Service's EndpointSlices, from the Service, its pods and its current slices.

Guarantees, those of `reconcileByAddressType` (Kubernetes' `k8s.io/endpointslice/reconciler.go`):
- For each IP family of the Service, the slices contain the endpoints of `desired_groups`, distributed by `pack`, with
  the hints that the Service requests.
- An IP family without endpoints has a placeholder: one slice without endpoints and ports.
- Slices of another family, slices of ports that no pod has, and slices of an earlier Service of the same name are
  deleted.
- Correct slices are only in the list `unchanged`. After the returned changes are applied, another call of the function
  returns no writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ctrlmgr.api.core import Pod, Service
from ctrlmgr.api.discovery import EndpointPort
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.endpointslice.endpoint_groups import PortSet, ZoneOf, address_types, desired_groups
from ctrlmgr.controllers.endpointslice.slice_objects import desired_labels
from ctrlmgr.controllers.endpointslice.slice_packing import Changes, Draft, pack, recycle
from ctrlmgr.controllers.endpointslice.topology_hints import Shares, asks_for_topology, hint, hint_by_cpu


def desired_changes(
    service: Object,
    pods: Sequence[Pod],
    existing: Iterable[Object],
    *,
    zone_of: ZoneOf,
    shares: Callable[[], Shares | None],
    capacity: int,
) -> Changes:
    """Return the writes to the slices of `service`, which have at most `capacity` endpoints each.

    `pods` are the pods that the Service selects, and `existing` are its current slices. The function `shares` is called
    only if the Service requests hints that are based on the CPU of zones.
    """
    drafts: dict[str, list[Draft]] = {}
    for current in existing:
        draft = Draft.of(current)
        drafts.setdefault(draft.address_type, []).append(draft)
    changes = Changes()
    for address_type in address_types(service.view(Service)):
        found = _changes_of(service, pods, drafts.pop(address_type, []), address_type, zone_of, shares, capacity)
        changes.add(found)
    for others in drafts.values():
        changes.delete += others
    return changes


def _changes_of(
    service: Object,
    pods: Sequence[Pod],
    existing: list[Draft],
    address_type: str,
    zone_of: ZoneOf,
    shares: Callable[[], Shares | None],
    capacity: int,
) -> Changes:
    """Return the writes to the slices of one IP family."""
    view = service.view(Service)
    labels = desired_labels(service)
    by_ports: dict[PortSet, list[Draft]] = {}
    changes = Changes()
    for draft in existing:
        if _is_owned(draft, service):
            by_ports.setdefault(frozenset(draft.ports), []).append(draft)
        else:
            changes.delete.append(draft)
    for ports, group in desired_groups(view, pods, address_type, zone_of).items():
        new = partial(_new, address_type, group.ports)
        present = by_ports.pop(ports, ())
        changes.add(pack(present, group.endpoints, new, lambda draft: _is_labelled(draft, labels), capacity))
    for drafts in by_ports.values():
        changes.delete += drafts
    _keep_place(changes, service, Draft(address_type, [], []), labels)
    if asks_for_topology(service.annotations):
        hint_by_cpu(changes, shares())
    else:
        hint(changes, view.spec.traffic_distribution)
    recycle(changes, lambda draft: _is_owned(draft, service))
    changes.unchanged += [draft for draft in changes.update if not draft.differs]
    changes.update = [draft for draft in changes.update if draft.differs]
    return changes


def _keep_place(changes: Changes, service: Object, placeholder: Draft, labels: Mapping[str, str]) -> None:
    """Ensure that at least one slice remains.

    If all slices would be deleted, keep one of them that is already empty. If there is no empty slice, create the
    placeholder.
    """
    if changes.create or changes.update or changes.unchanged:
        return
    for draft in changes.delete:
        if not draft.endpoints and not draft.ports and _is_owned(draft, service):
            changes.delete.remove(draft)
            draft.relabel = not _is_labelled(draft, labels)
            (changes.update if draft.relabel else changes.unchanged).append(draft)
            return
    changes.create.append(placeholder)


def _new(address_type: str, ports: list[EndpointPort]) -> Draft:
    return Draft(address_type, ports, [])


def _is_owned(draft: Draft, service: Object) -> bool:
    """Return whether a slice belongs to this Service, and not to an earlier Service of the same name."""
    owners = (draft.current and draft.current.metadata.owner_references) or ()
    return any((owner.uid, owner.kind, owner.api_version) == (service.uid, "Service", "v1") for owner in owners)


def _is_labelled(draft: Draft, labels: Mapping[str, str]) -> bool:
    return draft.current is None or draft.current.labels == labels
