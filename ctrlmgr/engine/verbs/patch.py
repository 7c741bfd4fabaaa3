"""The verb PATCH: each attempt applies the patch to the newest state of the object, in the served version."""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.operations import Answer, Operation
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.verbs.change import decide_change
from ctrlmgr.engine.writes.attempts import RETRIES, decide_and_append
from ctrlmgr.engine.writes.body_metadata import check_place
from ctrlmgr.engine.writes.patching import Patch
from ctrlmgr.engine.writes.write_context import Request


def patch(request: Request, patch: Patch) -> Operation[Answer]:
    """Patch the object; raises `NotFound` if the object does not exist."""

    def patched(ctx: Context, current: Object) -> Unstructured:
        plan = request.plan
        live = plan.live(current)
        fields, warnings = patch.apply(live, plan.codec, plan.kind.strategic)
        request.warnings += warnings
        check_place(request, fields)
        return plan.owned(live, fields, request.manager, request.now, request.target.subresource)

    return decide_and_append(request, lambda: decide_change(request, patched), limit=RETRIES)
