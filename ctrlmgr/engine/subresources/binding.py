"""`pods/NAME/binding` and `bindings`, with which a scheduler assigns a pod to a node."""

from __future__ import annotations

from ctrlmgr.api import status_responses
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.request_options import Body, Requester, WriteOptions
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.subresources.handler import Handler, admit_body, decode
from ctrlmgr.engine.verbs.change import decide_change
from ctrlmgr.engine.writes.attempts import RETRIES, Decision, decide_and_append
from ctrlmgr.engine.writes.write_context import Requests
from ctrlmgr.kinds.core.pod.subresources import bind

_BINDING = GroupVersionKind("", "v1", "Binding")


class BindingHandler(Handler):
    """Assigns pods to nodes; the response is a Status."""

    def create(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Assign a pod to a node: the pod in the URL or, for `bindings`, the pod that the body names."""
        pods = engine.kinds.stored(PODS) or target.kind
        request = engine.request(Target(pods, target.namespace, target.name, "binding"), options, requester)
        binding = given = decode(engine, _BINDING, body, request)
        if not target.name:
            request.target = request.target._replace(name=metadata_of(given).get("name") or "")

        def bound(ctx: Context, current: Object) -> Unstructured:
            pod = request.plan.live(current)
            bind(ctx, pod, binding)
            return pod

        def decide() -> Operation[Decision]:
            nonlocal binding
            binding = yield from admit_body(request, given, _BINDING, None if target.name else target.kind)
            decision = yield from decide_change(request, bound, admitted=True)
            return decision._replace(code=201, shown=None, object=None, status=status_responses.success(code=201))

        return (yield from decide_and_append(request, decide, limit=RETRIES))
