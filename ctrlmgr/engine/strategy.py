"""The strategy of a kind: the hooks that the engine calls during a write, for rules that a schema cannot express.

Guarantees: a strategy only decides; it never writes, waits or reads a clock. The inputs of a strategy are in its
`Context`. A strategy may add further proposals to `Context.companions`. The log appends the object and these proposals
in one append.

The engine calls the hooks in the order of apiserver's `registry/generic/registry/store.go` and `registry/rest`:

    create:  default → begin_create → prepare_for_create → (generated name) → validate → warnings → canonicalize
    update:  default → begin_update → prepare_for_update → validate + validate_update → warnings → canonicalize
    delete:  (graceful deletion, finalizers) → begin_termination, if the object remains for now, or begin_delete, if
             it is removed

Admission (`engine.admission_attributes`) changes a write before `begin_create` or `begin_update`, and validates the
write after `canonicalize`; the hook `conceal` is called last.

All hooks take `Unstructured` objects. A hook may change its arguments `new` and `obj`, but not `old`. The engine, not
the strategy, defaults and validates the metadata that all kinds share (`validation.object_meta`, with the strategy's
`name_check`, `any_finalizer` and `revalidates`). The errors that the engine finds precede those of the strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from ctrlmgr.api.field import FieldError
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.api.unstructured import Unstructured, at
from ctrlmgr.engine.validation.name_formats import NameCheck, subdomain_name
from ctrlmgr.eventlog.event import Proposal


class View(Protocol):
    """The current state, which a strategy may read."""

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return the object with the given key; None if no object has the key."""

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace, by key; a namespace of None means all namespaces."""


class State(View, Protocol):
    """A view of the state with a revision.

    If the log has newer changes, a write that was decided on the view is decided again.
    """

    @property
    def revision(self) -> Revision:
        """The revision up to which the view contains all changes.

        The view may also contain later changes of single objects.
        """

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return a revision that is different after each change of an object of one of `resources`.

        If an implementation cannot determine such a revision cheaply, the implementation returns `revision`, which
        changes more often.
        """


class WrittenKind(Protocol):
    """The parts of the written kind that a strategy and its callers use.

    `engine.kind.Kind` implements this protocol.
    """

    @property
    def resource(self) -> Resource:
        """The resource of the kind, in the version of the request."""

    @property
    def storage(self) -> Resource:
        """The resource as which the kind is stored; error messages contain its group."""

    @property
    def api_version(self) -> str:
        """The apiVersion of the request."""

    @property
    def namespaced(self) -> bool:
        """Return whether objects of the kind are in namespaces."""

    @property
    def strategy(self) -> Strategy:
        """The kind's strategy."""


@dataclass
class Context:
    """One write, in the form that the strategy receives."""

    kind: WrittenKind
    """The kind of the written object. For a subresource, the kind to which the subresource belongs."""
    view: View
    """The state on which the decision about the write is based.

    If the object or its companions change concurrently, the write starts over.
    """
    now: str
    """The current time for timestamps, in the format of RFC 3339 with seconds."""
    random: Random
    user: str = ""
    subresource: str = ""
    """The subresource, such as `status`, `finalize` or `binding`; empty for the object itself."""
    dry_run: bool = False
    companions: list[Proposal] = field(default_factory=list)
    """Proposals that must be appended together with the object, such as allocations and their release."""
    warnings: list[str] = field(default_factory=list)
    """The warnings for the response's `Warning` headers, without the code and the agent."""
    old: Unstructured | None = None
    """The stored object, which must not be changed; None if the write is a creation."""
    uid: str = ""
    """The user's uid, if it is known."""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further attributes of the user."""
    sent: Callable[[], Any] | None = None
    """A function that decodes the request's body again, if the body is an object.

    Only the encoded body distinguishes an empty list from an absent list.
    """

    def sent_at(self, *path: str | int) -> Any:
        """Return the body's value at a path of fields and indexes.

        The function returns None if the value is missing or the body is not an object.
        """
        return None if self.sent is None else at(self.sent(), *path)


class Strategy:
    """The rules of a kind that its schema does not contain.

    The base class has no rules beyond the schema, as most kinds need none.
    """

    allow_create_on_update = False
    """Whether a PUT of an object that does not exist creates it."""
    allow_unconditional_update = True
    """Whether a PUT may omit metadata.resourceVersion."""
    has_generation = False
    """Whether metadata.generation counts changes of the desired state (everything except metadata and status)."""
    has_status = False
    """Whether writes to the object ignore `status`, and writes to `/status` ignore all other fields.

    The registry of kinds sets this attribute for every kind with a status subresource.
    """
    status_keeps: tuple[str, ...] = ()
    """The metadata fields that a write to `/status` does not change: `reset_fields.METADATA`, or some of its fields."""
    returns_deleted = False
    """Whether a DELETE that removes the object immediately returns the object instead of a `Status`."""
    own_preconditions = False
    """Whether Kubernetes checks a deletion's preconditions in code of this kind, whose error message differs from the
    usual one.
    """
    revalidates: int = 1
    """The number of times that an update repeats the validation of a creation, including the metadata.

    The number determines how often an error of metadata is listed (`validation.object_meta.update_errors`).
    """
    checks_metadata = True
    """Whether the kind validates metadata itself.

    If the kind does not validate metadata itself, only the generic layer validates metadata, and only for objects
    without other errors. The value is False if Kubernetes' `Validate` of the kind does not call `ValidateObjectMeta`.
    """
    compares_metadata = True
    """Whether the kind itself also validates changes of metadata, in addition to the generic layer.

    The value is True if Kubernetes' `ValidateUpdate` of the kind calls `ValidateObjectMetaUpdate`.
    """
    name_check: NameCheck = staticmethod(subdomain_name)
    """A function that validates the names of objects; see `validation.name_formats`."""
    any_finalizer = False
    """Whether metadata.finalizers may contain a name that has no domain and is not one of Kubernetes' own finalizers.
    """
    status_on_create = False
    """Whether a creation may set the status, although `has_status` is true."""
    default_propagation = "Background"
    """The default handling of dependents when an object is deleted: `Background` or `Orphan`.

    The value is empty if objects of the kind have no dependents, so that options of the deletion have no effect
    (Events).
    """
    default_propagation_warnings: tuple[str, ...] = ()
    """The warnings in the response to a deletion whose options set no propagation policy."""
    fields: tuple[str, ...] = ()
    """The selectable fields in addition to metadata.name and metadata.namespace; `selectable` returns their values."""

    def validation_cost(self, body: bytes) -> int:
        """Return the relative validation cost of one byte of this object, as sent or as stored; usually 1."""
        return 1

    def default(self, obj: Unstructured) -> None:
        """Set defaults for missing fields, in place (Kubernetes' SetDefaults functions).

        The method must be idempotent.
        """

    def default_status(self, obj: Unstructured) -> None:
        """Set the defaults of an object of which a patch has changed only the status.

        A kind may set more defaults for a patch of the status than for other writes.
        """
        self.default(obj)

    def begin_create(self, ctx: Context, obj: Unstructured) -> None:
        """Allocate resources such as addresses; raises an `ApiError` if the allocation fails."""

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Remove or set the fields of a new object that a client may not choose at creation.

        The engine removes `status` from a new object if `has_status` is set.
        """

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Return the errors of `obj` itself, on creation and, together with `validate_update`, on every update."""
        return []

    def begin_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Allocate and release resources; raises an `ApiError` if an allocation fails."""

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Restore the fields that an update may not change.

        `ctx.subresource` names the written subresource, including `status`.
        """

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Return the errors of a change from `old` to `new`.

        The method is also called for writes to subresources (`ctx.subresource`).
        """
        return []

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return warnings for values that are allowed but not advisable, with Kubernetes' wording."""
        return []

    def canonicalize(self, obj: Unstructured) -> None:
        """Convert a valid object into its final form, in place; a generated name is known from this step on."""

    def conceal(self, obj: Unstructured) -> None:
        """Remove the fields that Kubernetes stores but never returns to clients.

        The method is called after admission.
        """

    def grace_period(self, obj: Object, seconds: int | None) -> int | None:
        """Return the grace period of a deleted object in seconds; None if its kind has no graceful deletion.

        The argument `seconds` is DeleteOptions.gracePeriodSeconds; the value 0 removes the object at once, if it has
        no finalizer.
        """
        return None

    def begin_termination(self, ctx: Context, obj: Unstructured) -> None:
        """Change an object that a DELETE marks as terminating but does not remove yet.

        The engine calls this method once, after it has changed the object's metadata.
        """

    def begin_delete(self, ctx: Context, obj: Object) -> None:
        """Release the object's allocations by adding proposals to `companions`."""

    def finalizers(self, obj: Object) -> Sequence[str]:
        """Return the finalizers outside metadata.finalizers that prevent the removal of a terminating object.

        The finalizers of a Namespace are in spec.finalizers.
        """
        return ()

    def field_refusal(self, field: str) -> str:
        """Return the error message for a field that is not selectable (`AddFieldLabelConversionFunc` of the kind)."""
        if self.fields:
            return f"field label not supported: {field}"
        return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the values of `fields` in `obj`; the value of an absent field is the empty string."""
        return {}
