"""Changes an object: computes the proposal for a new state (`registry/rest/update.go`, `Store.Update`).

Guarantees:
- An update with a resourceVersion is refused if the object has another resourceVersion.
- Fields that the client may not change are kept: creation time, deletion time, generation, and `status` except through
  `/status`.
- An update that changes only the times of managed fields appends nothing.
- If an update removes the last finalizer of a terminating object, it also removes the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ctrlmgr.api.field import FieldError, errors_of, invalid, refuse
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.api_errors import conflict, not_found
from ctrlmgr.engine.features.dropping import drop_disabled
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.managedfields import keep_timestamps
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Body
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.object_meta import update_errors
from ctrlmgr.engine.verbs.create import decide_create
from ctrlmgr.engine.writes.attempts import Decision
from ctrlmgr.engine.writes.body_metadata import check_namespace, deduplicate_owners
from ctrlmgr.engine.writes.empty_error_values import restore_empty_values
from ctrlmgr.engine.writes.write_context import Request
from ctrlmgr.errors import ConversionFailed, UnknownError
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.golang.go_numbers import parse_uint

Update = Callable[[Context, Object], Unstructured]
"""A function that returns the new state of an object: complete, in the stored version, with defaults and managed
fields.

The metadata.resourceVersion of the new state is the version that the client read, if the client sent one.
"""

_NOT_DESIRED = ("apiVersion", "kind", "metadata", "status")
_NOT_COUNTED = ("status", "binding", "eviction")
"""Subresources whose writes never change the desired state."""


class AdmissionForm(Protocol):
    """The form of an object for admission during a write to a subresource whose bodies have another kind."""

    kind: GroupVersionKind

    def proposed(self) -> tuple[Unstructured, Unstructured]:
        """Return the new and the current body of the subresource; admission may change the new body."""

    def shown(self, obj: Unstructured) -> Unstructured:
        """Return a copy of an object in the form of the subresource, for validating admission."""

    def take(self, obj: Unstructured, shown: Unstructured) -> None:
        """Change the object, in place, to match `shown`, the form that admission may have changed."""


def decide_change(
    request: Request,
    update: Update,
    *,
    uid: str = "",
    new: Callable[[], Unstructured] | None = None,
    managed: bool = False,
    facet: AdmissionForm | None = None,
    admitted: bool = False,
) -> Operation[Decision]:
    """Decide a change of the stored object.

    If `uid` is given, the object must have the uid `uid`. If the object does not exist, the function `new` returns the
    object to create; if `new` is None, `NotFound` is raised. `managed` says whether the result of `new` already
    includes managed fields. Admission receives the object or, if it is given, the `facet` of the object. If `admitted`
    is set, the engine does not call admission, because admission has already accepted the write in another form.
    """
    current = _found(request, uid, may_create=new is not None)
    if current is None:
        assert new is not None  # otherwise `_found` has raised NotFound
        request.upserts = True
        return (yield from decide_create(request, new(), managed=managed))
    yield from _seen(request, current)
    strategy, old = request.plan.strategy, request.plan.read(current)
    ctx = request.context(old)
    fields = yield from _make(request, ctx, current, update)
    attributes = None
    if not admitted and request.admission.handles(request.plan.resource, request.target.subresource, Verb.UPDATE):
        attributes = _attributes(request, ctx, fields, _versioned(old, current), facet)
        fields = yield from _admit(request, ctx, attributes, fields, facet)
    _prepare(request, ctx, fields, old, current)
    _validate(ctx, fields, old, request.sent)
    strategy.canonicalize(fields)
    if attributes is not None:
        yield from _judge(request, attributes, fields, _versioned(old, current), facet)
    strategy.conceal(fields)
    decision = yield from _store(request, ctx, fields, old, current)
    if attributes is None or not (attributes.late or attributes.changed_by):
        return decision
    return decision._replace(late=attributes.late, changed_by=attributes.changed_by)


def _found(request: Request, uid: str, *, may_create: bool) -> Object | None:
    """Return the stored object; None if the object must be created.

    Raises `NotFound` if the object does not exist and must not be created, and `Conflict` if it has another uid.
    """
    current = request.current()
    if current is None and not may_create:
        raise not_found(request.plan.resource, request.target.name)
    found = "" if current is None else current.uid
    if uid and uid != found:
        raise conflict(request.plan.resource, request.target.name, _other_uid(request, uid, found))
    return current


def _make(request: Request, ctx: Context, current: Object, update: Update) -> Operation[Unstructured]:
    """Return the new state of the object, decoded and with defaults, as admission receives it."""
    fields = yield from request.converting(lambda: update(ctx, current))
    metadata = metadata_of(fields)
    check_namespace(request, metadata)
    deduplicate_owners(metadata, ctx.warnings)
    return fields


def _admit(
    request: Request, ctx: Context, attributes: Attributes, fields: Unstructured, facet: AdmissionForm | None
) -> Operation[Unstructured]:
    """Run mutating admission, and return the changed object."""
    yield from request.admission.admit(attributes)
    fields = _taken(attributes, fields, facet)
    deduplicate_owners(metadata_of(fields), ctx.warnings, after_admission=True)
    return fields


def _judge(
    request: Request, attributes: Attributes, fields: Unstructured, old: Unstructured, facet: AdmissionForm | None
) -> Operation[None]:
    """Run validating admission on the complete object, or on the `facet` of both states if a facet is given."""
    attributes.object = fields
    if facet is not None:
        attributes.object, attributes.old = facet.shown(fields), facet.shown(old)
    yield from request.admission.validate(attributes)


def _seen(request: Request, current: Object) -> Operation[None]:
    """Convert the stored object into the served version, and keep the conversion for later steps.

    As in Kubernetes, later steps use the converted object. If the webhook fails after the first conversion, the write
    fails only when the new object is converted back into the stored version.
    """
    try:
        yield from request.shown(current)
    except ConversionFailed as failed:
        group, version, name = request.plan.kind.gvk
        raise failed.of(f"{group}/{version}, Kind={name}") from failed


def _attributes(
    request: Request, ctx: Context, new: Unstructured, old: Unstructured, facet: AdmissionForm | None
) -> Attributes:
    if facet is None:
        return request.attributes(ctx, Verb.UPDATE, new, old)
    return request.attributes(ctx, Verb.UPDATE, *facet.proposed(), facet.kind)


def _versioned(old: Unstructured, current: Object) -> Unstructured:
    return {**old, "metadata": {**old["metadata"], "resourceVersion": str(current.revision)}}


def _taken(attributes: Attributes, fields: Unstructured, facet: AdmissionForm | None) -> Unstructured:
    if facet is None:
        return attributes.fields
    facet.take(fields, attributes.fields)
    return fields


def parse_version(text: str) -> int:
    """Return a resourceVersion as a number; 0 for an empty resourceVersion.

    Raises `UnknownError`, as Kubernetes does, if the resourceVersion is malformed.
    """
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as problem:
        raise UnknownError(str(problem)) from problem


def _other_uid(request: Request, uid: str, found: str) -> str:
    """Return the error of etcd3 storage for an object with another uid.

    The message contains the key, with a prefix for custom kinds.
    """
    target, kind = request.target, request.plan.kind
    before = ("", "registry", kind.resource.group) if kind.is_custom else ("",)
    path = kind.registry_path or kind.resource.plural
    key = "/".join((*before, path, *filter(None, (target.namespace, target.name))))
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: UID in precondition: {uid}, UID in object meta: {found}"
    )


def _check_version(request: Request, metadata: Mapping[str, Any], current: Object) -> None:
    plan, name = request.plan, request.target.name
    version = parse_version(metadata.get("resourceVersion") or "")
    if not version:
        if not plan.strategy.allow_unconditional_update:
            error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise refuse(plan.resource.plural, plan.resource.group, name, [error])
    elif version != current.revision:
        raise conflict(plan.resource, name)


def _prepare(request: Request, ctx: Context, new: Unstructured, old: Unstructured, current: Object) -> None:
    """Set the fields that the server owns, and let the strategy prepare the object.

    The client never sets the generation.
    """
    strategy, metadata, before = ctx.kind.strategy, metadata_of(new), old["metadata"]
    _check_version(request, metadata, current)
    check_namespace(request, metadata)  # checked again, because admission may have changed it
    _keep(metadata, before, "generation")
    strategy.begin_update(ctx, new, old)
    if strategy.has_status:
        if ctx.subresource == "status":
            _keep_all_but_status(new, old, strategy.status_keeps)
        elif not ctx.subresource:
            _keep(new, old, "status")
    drop_disabled(ctx.kind.resource.group, new["kind"], new, old)
    strategy.prepare_for_update(ctx, new, old)
    if strategy.has_generation and ctx.subresource not in _NOT_COUNTED and _desires_differ(new, old):
        metadata_of(new)["generation"] = before.get("generation", 0) + 1
    _keep_system_metadata(metadata_of(new), before)
    metadata_of(new)["resourceVersion"] = str(current.revision)


def _keep(new: dict[str, Any], old: Mapping[str, Any], field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _keep_all_but_status(new: Unstructured, old: Unstructured, metadata: Iterable[str]) -> None:
    for field in new.keys() | old.keys():
        if field not in _NOT_DESIRED:
            _keep(new, old, field)
    for field in metadata:
        _keep(new["metadata"], old["metadata"], field)


def _desires_differ(new: Unstructured, old: Unstructured) -> bool:
    return any(new.get(field) != old.get(field) for field in new.keys() | old.keys() if field not in _NOT_DESIRED)


def _keep_system_metadata(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    if not metadata.get("uid"):
        metadata["uid"] = old["uid"]
    for field in ("creationTimestamp", "deletionTimestamp"):
        if old.get(field):
            metadata[field] = old[field]
    if old.get("deletionGracePeriodSeconds") is not None and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]


def _validate(ctx: Context, new: Unstructured, old: Unstructured, sent: Body | None) -> None:
    kind, strategy, metadata = ctx.kind, ctx.kind.strategy, new["metadata"]

    def find() -> list[FieldError]:
        errors = update_errors(
            metadata,
            old["metadata"],
            namespaced=kind.namespaced,
            name_check=strategy.name_check,
            revalidated=0 if ctx.subresource else strategy.revalidates,
            compared=strategy.compares_metadata,
            any_finalizer=strategy.any_finalizer,
        )
        errors += strategy.validate(ctx, new)
        return errors + strategy.validate_update(ctx, new, old)

    if errors := errors_of(find):
        raise refuse(new["kind"], kind.storage.group, metadata.get("name", ""), restore_empty_values(errors, sent))
    ctx.warnings += strategy.warnings(ctx, new, old)


def _store(
    request: Request, ctx: Context, new: Unstructured, old: Unstructured, current: Object
) -> Operation[Decision]:
    plan = request.plan
    kept = keep_timestamps(old, new)
    obj = yield from request.converting(lambda: plan.made(kept))
    warnings = request.all_warnings(ctx)
    if is_released(plan.strategy.finalizers, obj, current):
        return _remove(request, ctx, obj, current)
    if current.is_stored_as(obj.body):
        return Decision(200, object=current, warnings=warnings)
    if request.options.dry_run:
        return Decision(200, object=obj.at(current.revision), warnings=warnings)
    proposals = (Proposal(EventType.MODIFIED, obj, current.revision), *ctx.companions)
    return Decision(200, proposals, 0, warnings=warnings)


def is_released(finalizers: Callable[[Object], Any], obj: Object, current: Object) -> bool:
    """Return whether a terminating object can be removed now (`ShouldDeleteDuringUpdate`)."""
    before = current.metadata
    return (
        before.deletion_timestamp is not None
        and not before.deletion_grace_period_seconds
        and not obj.metadata.finalizers
        and not finalizers(obj)
    )


def _remove(request: Request, ctx: Context, obj: Object, current: Object) -> Decision:
    """Decide the deletion of the object in its last stored state; the response contains the updated object."""
    warnings = request.all_warnings(ctx)
    shown = obj.at(current.revision)
    if request.options.dry_run:
        return Decision(200, object=shown, warnings=warnings)
    ctx.companions.clear()  # drop the companions of the update, which is not appended
    request.plan.strategy.begin_delete(ctx, current)
    proposals = (Proposal(EventType.DELETED, current, current.revision), *ctx.companions)
    return Decision(200, proposals, None, shown, warnings=warnings)
