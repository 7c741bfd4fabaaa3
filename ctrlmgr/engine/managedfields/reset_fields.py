"""The fields that a request cannot change however it names them, and that its manager therefore does not get to own.

A write to an object leaves its status alone, one to `/status` leaves the spec alone; some kinds have more to say.
Source: the `GetResetFields` of kubernetes `pkg/registry/*/*/strategy.go`; apiserver `pkg/endpoints/installer.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from ctrlmgr.engine.managedfields.field_set import (
    EVERY,
    FieldSet,
    difference_with_children,
    matching,
    of_paths,
)

Filter: TypeAlias = Callable[[FieldSet], FieldSet]
"""Takes from a set what cannot be owned."""


def _all_but(*paths: tuple[str, ...]) -> Filter:
    return partial(difference_with_children, other=of_paths(*paths))


def _only(*paths: tuple[str, ...]) -> Filter:
    return partial(matching, pattern=of_paths(*paths))


_STATUS = ("status",)
_SPEC = ("spec",)
_METADATA = ("metadata",)
_USUAL: Mapping[str, Filter] = {"": _all_but(_STATUS), "status": _all_but(_SPEC)}
_NO_METADATA: Mapping[str, Filter] = {"": _all_but(_STATUS), "status": _all_but(_SPEC, _METADATA)}

_UNUSUAL: Mapping[tuple[str, str], Mapping[str, Filter]] = {
    ("", "Namespace"): {**_USUAL, "finalize": _all_but(_STATUS)},
    ("", "Pod"): {
        "": _all_but(_STATUS),
        "status": _all_but(_SPEC, ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
        "ephemeralcontainers": _only(("spec", "ephemeralContainers")),
        "resize": _only(
            *(
                ("spec", containers, EVERY, field)
                for containers in ("containers", "initContainers")
                for field in ("resources", "resizePolicy")
            )
        ),
    },
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _NO_METADATA,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _NO_METADATA,
    ("apiregistration.k8s.io", "APIService"): _NO_METADATA,
    ("apps", "Deployment"): {"": _all_but(_STATUS), "status": _all_but(_SPEC, ("metadata", "labels"))},
    ("certificates.k8s.io", "CertificateSigningRequest"): {
        "": _all_but(_SPEC, _STATUS),
        "status": _all_but(_SPEC, ("status", "conditions")),
        "approval": _all_but(_SPEC, ("status", "certificate")),
    },
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _NO_METADATA,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _NO_METADATA,
    ("networking.k8s.io", "ServiceCIDR"): {},  # named under a group that does not exist, so without effect
    ("storage.k8s.io", "VolumeAttachment"): _NO_METADATA,
}


def reset_fields(group: str, kind: str, *, has_status: bool) -> Mapping[str, Filter]:
    """Return what to take from the sets of a kind's managers, by subresource (empty for the object itself)."""
    return _UNUSUAL.get((group, kind), _USUAL if has_status else {})
