"""Server-side apply: merges the fields of several managers into one object (apiserver `applyPatcher`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.api_errors import conflict
from ctrlmgr.engine.operations import Answer, Operation
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.verbs.change import decide_change
from ctrlmgr.engine.writes.attempts import RETRIES, decide_and_append
from ctrlmgr.engine.writes.body_metadata import check_place
from ctrlmgr.engine.writes.patching import Patch
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.schema.raw_extension import with_sorted_raw_extensions


def apply(request: Request, patch: Patch) -> Operation[Answer]:
    """Apply the object in the body; an apply without a subresource creates the object if it does not exist."""
    applying = _Applying(request, patch)
    new = None if request.target.subresource else applying.new
    return decide_and_append(
        request, lambda: decide_change(request, applying.changed, new=new, managed=True), limit=RETRIES
    )


class _Applying:
    """One server-side apply request."""

    def __init__(self, request: Request, patch: Patch) -> None:
        self._request = request
        self._patch = patch

    def new(self) -> Unstructured:
        """Return the object to create if the applied object does not exist."""
        fields = self._merged(None)
        if uid := metadata_of(fields).get("uid"):
            detail = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(self._request.plan.resource, self._request.target.name, detail)
        check_place(self._request, fields)
        return fields

    def changed(self, ctx: Context, current: Object) -> Unstructured:
        """Return the new state of the existing object."""
        fields = self._merged(self._request.plan.live(current))
        check_place(self._request, fields)
        return self._request.plan.stored(fields)

    def _merged(self, live: Unstructured | None) -> Unstructured:
        request, plan = self._request, self._request.plan
        applied, repeated = self._patch.applied()
        merged: dict[str, Any] = plan.manager.apply(
            live,
            applied,
            request.manager,
            request.now,
            force=request.options.force,
            subresource=request.target.subresource,
        )
        request.warnings += self._patch.check_applied(repeated)
        return plan.codec.read(with_sorted_raw_extensions(plan.kind.strategic, merged)).fields
