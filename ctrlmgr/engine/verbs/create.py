"""Creates an object: computes the proposal that adds it (apiserver `registry/rest/create.go`, `Store.create`).

Guarantees: the server sets the uid, the creation time and the deletion time, and ignores the client's values for these
fields. A generated name is a name that no other object of the kind has. An object is created only if admission and the
namespace allow the creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ctrlmgr.api.field import FieldError, errors_of, refuse
from ctrlmgr.api.resource import Key
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.api_errors import already_exists, no_free_name
from ctrlmgr.engine.features.dropping import drop_disabled
from ctrlmgr.engine.generated_names import generate_name, new_uid
from ctrlmgr.engine.operations import Answer, Operation
from ctrlmgr.engine.request_options import Body
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.name_formats import any_name, path_segment_name
from ctrlmgr.engine.validation.object_meta import validate_metadata
from ctrlmgr.engine.writes.attempts import Decision, decide_and_append
from ctrlmgr.engine.writes.body_metadata import check_namespace, deduplicate_owners
from ctrlmgr.engine.writes.empty_error_values import restore_empty_values
from ctrlmgr.engine.writes.write_context import Bodies, Request
from ctrlmgr.errors import UnknownError
from ctrlmgr.eventlog.event import EventType, Proposal

NAME_ATTEMPTS = 8
"""The maximum number of generated names that are tried (`maxNameGenerationCreateAttempts`)."""

_SYSTEM = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def create(request: Request, body: Body) -> Operation[Answer]:
    """Create the object in the body; raises `AlreadyExists` if an object has the same name."""
    bodies = Bodies(request, body)
    bodies.read()

    def attempt() -> Operation[Decision]:
        return decide_create(request, bodies.take())

    return (yield from decide_and_append(request, attempt, limit=NAME_ATTEMPTS))


def decide_create(request: Request, fields: Unstructured, *, managed: bool = False) -> Operation[Decision]:
    """Decide the creation of an object; the decoded object `fields` is changed in place.

    The argument `managed` says whether `fields` already contains managed fields, as after an apply.
    """
    ctx = request.context()
    fields = _default(request, ctx, fields, managed=managed)
    attributes = request.attributes(ctx, Verb.CREATE, fields)
    yield from request.admission.admit(attributes)
    fields = _prepare(request, ctx, attributes)
    _validate(ctx, fields, request.sent)
    request.plan.strategy.canonicalize(fields)
    attributes.name = fields["metadata"].get("name") or ""
    yield from request.admission.validate(attributes)
    request.plan.strategy.conceal(fields)
    return (yield from _store(request, ctx, attributes))


def _default(request: Request, ctx: Context, fields: Unstructured, *, managed: bool) -> Unstructured:
    """Return the object with defaults and managed fields, without the fields that the server sets."""
    metadata = metadata_of(fields)
    for name in _SYSTEM:
        metadata.pop(name, None)
    check_namespace(request, metadata)
    deduplicate_owners(metadata, ctx.warnings)
    plan = request.plan
    return plan.stored(fields) if managed else plan.owned(None, fields, request.manager, request.now, "")


def _free_name(request: Request, base: str) -> str:
    storage, namespace = request.plan.storage, request.target.namespace
    for _ in range(NAME_ATTEMPTS):
        name = generate_name(base, request.random)
        if request.state.get(storage, Key(namespace, name)) is None:
            return name
    raise no_free_name(request.plan.resource, name)


def _prepare(request: Request, ctx: Context, attributes: Attributes) -> Unstructured:
    """Set the fields that the server owns, and let the strategy prepare the object after admission."""
    fields, strategy = attributes.fields, ctx.kind.strategy
    metadata = fields["metadata"]
    deduplicate_owners(metadata, ctx.warnings, after_admission=True)
    metadata["creationTimestamp"] = request.now
    metadata["uid"] = new_uid(request.random)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = _free_name(request, metadata["generateName"])
    check_namespace(request, metadata)  # checked again, because admission may have changed it
    strategy.begin_create(ctx, fields)
    if strategy.has_status and not strategy.status_on_create:
        fields.pop("status", None)
    drop_disabled(ctx.kind.resource.group, fields["kind"], fields, None)
    strategy.prepare_for_create(ctx, fields)
    if strategy.has_generation:
        fields["metadata"]["generation"] = 1
    return fields


def _validate(ctx: Context, fields: Unstructured, sent: Body | None) -> None:
    kind, strategy, metadata = ctx.kind, ctx.kind.strategy, fields["metadata"]

    find = partial(errors_of_new, ctx, strategy, fields, namespaced=kind.namespaced)
    if errors := errors_of(find):
        raise refuse(fields["kind"], kind.storage.group, metadata.get("name", ""), restore_empty_values(errors, sent))
    ctx.warnings += strategy.warnings(ctx, fields, None)


def errors_of_new(ctx: Context, strategy: Strategy, fields: Unstructured, *, namespaced: bool) -> list[FieldError]:
    """Return the errors of a new object: its kind's errors or, if there are none, the generic layer's errors."""
    metadata, errors = fields["metadata"], list[FieldError]()
    if strategy.checks_metadata:
        errors += validate_metadata(
            metadata, namespaced=namespaced, name_check=strategy.name_check, any_finalizer=strategy.any_finalizer
        )
    errors += strategy.validate(ctx, fields)
    is_done = strategy.checks_metadata and strategy.name_check is not any_name
    return errors if errors or is_done else _generic_errors(metadata, namespaced=namespaced)


def _generic_errors(metadata: Mapping[str, Any], *, namespaced: bool) -> list[FieldError]:
    """Return the generic layer's errors about metadata (`registry/rest/create.go`, `BeforeCreate`)."""
    return validate_metadata(metadata, namespaced=namespaced, name_check=path_segment_name, any_finalizer=True)


def _store(request: Request, ctx: Context, attributes: Attributes) -> Operation[Decision]:
    plan, fields = request.plan, attributes.fields
    metadata = fields["metadata"]
    given = metadata.pop("resourceVersion", "").lstrip("0")
    if given.isdecimal() and not request.options.dry_run:
        raise UnknownError("resourceVersion should not be set on objects to be created")
    obj = yield from request.converting(lambda: plan.made(fields))
    there = request.state.get(plan.storage, obj.key)
    if there is not None:
        raise already_exists(plan.resource, obj.name, terminating=there.is_terminating)
    if request.options.dry_run:
        if given.isdecimal():  # Kubernetes does not check the namespace in a dry run
            obj = obj.at(int(given))
        return Decision(201, object=obj, warnings=request.all_warnings(ctx))
    proposals = (Proposal(EventType.ADDED, obj, 0, attributes.within), *ctx.companions)
    return Decision(
        201, proposals, 0, warnings=request.all_warnings(ctx), late=attributes.late, changed_by=attributes.changed_by
    )
