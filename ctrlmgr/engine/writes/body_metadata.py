"""Checks the metadata in a body against the request: the namespace, the name and the owners.

Source: apiserver `pkg/endpoints/handlers/create.go` (`dedupOwnerReferences`) and `patch.go`.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import Unstructured, metadata_of, repeated
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.errors import BadRequest

_WARNING = (
    "metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_AFTER_ADMISSION = _WARNING.replace("entries;", "entries after mutating admission happens;", 1)


def check_namespace(request: Request, metadata: dict[str, Any]) -> None:
    """Set the object's namespace to the namespace of the request.

    Raises `BadRequest` if the object has another namespace.
    """
    if not request.plan.kind.namespaced:
        metadata.pop("namespace", None)
        return
    namespace = metadata.get("namespace") or request.target.namespace
    if namespace != request.target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def check_place(request: Request, fields: Unstructured) -> None:
    """Raise `BadRequest` if the object's name or namespace differs from the name or namespace in the URL."""
    metadata = metadata_of(fields)
    check_namespace(request, metadata)
    name, requested = metadata.get("name") or "", request.target.name
    if not name:
        raise BadRequest(f"the name of the object ({requested} based on URL) was undeterminable: name must be provided")
    if name != requested:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({requested})")


def deduplicate_owners(metadata: dict[str, Any], warnings: list[str], *, after_admission: bool = False) -> None:
    """Drop repeated owner references, and add a warning.

    `after_admission` says whether admission has already run; as in Kubernetes, it determines the text of the warning.
    """
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    if dropped := repeated(owners):
        metadata["ownerReferences"] = [owner for index, owner in enumerate(owners) if index not in dropped]
        uids = ", ".join(owners[index].get("uid", "") for index in sorted(dropped))
        start = _AFTER_ADMISSION if after_admission else _WARNING
        warnings.append(start + uids)
