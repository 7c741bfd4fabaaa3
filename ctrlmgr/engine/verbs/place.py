"""Whether an object is where, and called what, the request says."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.verbs.request import Request
from ctrlmgr.errors import BadRequest


def check_namespace(request: Request, metadata: dict[str, Any]) -> None:
    """Make the object's namespace the request's; raises `BadRequest` when it says another one."""
    if not request.plan.kind.namespaced:
        metadata.pop("namespace", None)
        return
    namespace = metadata.get("namespace") or request.target.namespace
    if namespace != request.target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def check_place(request: Request, fields: Unstructured) -> None:
    """Raise `BadRequest` if an object is not called what the URL calls it, or is somewhere else."""
    metadata = metadata_of(fields)
    check_namespace(request, metadata)
    name, asked = metadata.get("name") or "", request.target.name
    if not name:
        raise BadRequest(f"the name of the object ({asked} based on URL) was undeterminable: name must be provided")
    if name != asked:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({asked})")
