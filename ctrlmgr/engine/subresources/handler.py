"""What a subresource with bodies of its own answers; whatever it leaves out, it does not allow."""

from __future__ import annotations

from copy import deepcopy

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.attributes import Verb
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.options import Body, GetOptions, Requester, WriteOptions
from ctrlmgr.engine.writes.request import Request, Requests
from ctrlmgr.errors import MethodNotAllowed, StatusDetails


class Handler:
    """A subresource that is not its object in another light, but a thing of another kind."""

    def get(self, engine: Requests, target: Target, options: GetOptions) -> Operation[Object]:
        """Return it."""
        raise _not_allowed()

    def create(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Do what its creation stands for."""
        raise _not_allowed()

    def update(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Replace it."""
        raise _not_allowed()

    def patch(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Patch it."""
        raise _not_allowed()


def decode(engine: Requests, gvk: GroupVersionKind, body: Body, request: Request) -> Unstructured:
    """Decode a body of another kind than the object's; what it has too much is told of as asked."""
    codec = engine.kinds.codec_for(gvk)
    fields, problems = codec.decode(body.data, body.media_type)
    if problems and request.options.field_validation == "Strict":
        raise codec.refuse_strictly(problems)
    if request.options.field_validation == "Warn":
        request.warnings += problems
    if body.heard is not None:
        body.heard(fields, lambda: codec.encode(fields))
    return fields


def admit_body(
    request: Request, body: Unstructured, gvk: GroupVersionKind, asked: Kind | None = None
) -> Operation[Unstructured]:
    """Let admission have its say about a body of another kind than the object's that is created (a Binding, say).

    `asked` is the kind that the URL names where that is not the object's (`bindings`). Returns what admission made of
    the body; `body` itself stays as it is, because an attempt may be made again.
    """
    ctx = request.context()
    body = deepcopy(body)
    body.setdefault("metadata", {}).setdefault("namespace", request.target.namespace)
    attributes = request.attributes(ctx, Verb.CREATE, body, None, gvk)
    if asked is not None:
        attributes.kind, attributes.resource, attributes.subresource = asked, asked.resource, ""
    yield from request.admission.admit(attributes)
    yield from request.admission.validate(attributes)
    request.warnings += ctx.warnings  # what changes the object is an attempt with warnings of its own
    return attributes.fields


def _not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed(details=StatusDetails())
