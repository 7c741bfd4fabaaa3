"""The base class for handlers of subresources with their own kind of bodies.

A verb is refused unless a subclass overrides it.
"""

from __future__ import annotations

from copy import deepcopy

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.kind import GroupVersionKind, Kind
from ctrlmgr.engine.operations import Answer, Operation, Target
from ctrlmgr.engine.request_options import Body, GetOptions, Requester, WriteOptions
from ctrlmgr.engine.writes.write_context import Request, Requests
from ctrlmgr.errors import MethodNotAllowed, StatusDetails


class Handler:
    """The handler of a subresource whose kind differs from that of the object."""

    def get(self, engine: Requests, target: Target, options: GetOptions) -> Operation[Object]:
        """Return the subresource of an object."""
        raise _not_allowed()

    def create(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Handle a creation (POST) of the subresource."""
        raise _not_allowed()

    def update(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Replace the subresource of an object."""
        raise _not_allowed()

    def patch(
        self, engine: Requests, target: Target, body: Body, options: WriteOptions, requester: Requester
    ) -> Operation[Answer]:
        """Patch the subresource of an object."""
        raise _not_allowed()


def decode(engine: Requests, gvk: GroupVersionKind, body: Body, request: Request) -> Unstructured:
    """Decode a body whose kind differs from that of the object.

    Unknown fields of the body are ignored, reported as warnings or refused, according to `fieldValidation`.
    """
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
    request: Request, body: Unstructured, gvk: GroupVersionKind, requested_kind: Kind | None = None
) -> Operation[Unstructured]:
    """Run admission for a created body whose kind differs from the object's, such as a Binding.

    The argument `requested_kind` is the kind in the URL, if this is not the kind of the object (`bindings`). The
    function returns the body as it is after admission. The argument `body` itself is not changed, because the write
    may be attempted again.
    """
    ctx = request.context()
    body = deepcopy(body)
    body.setdefault("metadata", {}).setdefault("namespace", request.target.namespace)
    attributes = request.attributes(ctx, Verb.CREATE, body, None, gvk)
    if requested_kind is not None:
        attributes.kind, attributes.resource, attributes.subresource = requested_kind, requested_kind.resource, ""
    yield from request.admission.admit(attributes)
    yield from request.admission.validate(attributes)
    request.warnings += ctx.warnings  # the following change of the object collects its warnings separately
    return attributes.fields


def _not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed(details=StatusDetails())
