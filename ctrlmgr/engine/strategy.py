"""The strategy of a kind: the hooks that the engine calls during a write, for rules beyond the schema.

Guarantees: a strategy decides; it never writes, waits or reads a clock. Its inputs are in its `Context`. Proposals to
append beside the object go into `Context.companions`, so that the log contains both or neither.

The order of calls is that of apiserver's `registry/generic/registry/store.go` and `registry/rest`:

    create:  default → begin_create → prepare_for_create → (generated name) → validate → warnings → canonicalize
    update:  default → begin_update → prepare_for_update → validate + validate_update → warnings → canonicalize
    delete:  (graceful deletion, finalizers) → begin_termination, if the object remains for now, or begin_delete, if
             it is removed

Admission (`engine.admission_attributes`) changes a write before `begin_create` or `begin_update`, and validates it
after `canonicalize`; `conceal` is last.

All hooks take `Unstructured` objects. They may change `new` and `obj`, but not `old`. The engine, not the strategy,
defaults and validates the metadata that all kinds share (`validation.metadata`, with the strategy's `name_check`,
`any_finalizer` and `revalidates`). Its errors precede those of the strategy.
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
        """Return one object, or None if it does not exist."""

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace, or of all if it is None, by key."""


class State(View, Protocol):
    """A view with a revision: a write that is decided on it is decided again if the log has newer changes."""

    @property
    def revision(self) -> Revision:
        """The view contains all changes up to this revision; it may contain later changes of single objects."""

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return a revision that differs from an earlier result if any of these resources has changed in between.

        An implementation that cannot tell cheaply returns `revision`, which changes more often.
        """


class WrittenKind(Protocol):
    """The parts of the written kind that a strategy and its callers use; implemented by `engine.kind.Kind`."""

    @property
    def resource(self) -> Resource:
        """Its resource, in the version of the request."""

    @property
    def storage(self) -> Resource:
        """The resource it is stored as; error messages name its group."""

    @property
    def api_version(self) -> str:
        """The apiVersion of the request."""

    @property
    def namespaced(self) -> bool:
        """Return whether its objects are in namespaces."""

    @property
    def strategy(self) -> Strategy:
        """The kind's strategy."""


@dataclass
class Context:
    """One write, as its strategy sees it."""

    kind: WrittenKind
    """The kind of the written object. For a subresource, the kind that the subresource belongs to."""
    view: View
    """The state that the write is decided on. If the object or its companions change concurrently, the write starts
    over.
    """
    now: str
    """The current time for timestamps, RFC 3339 with seconds."""
    random: Random
    user: str = ""
    subresource: str = ""
    """`status`, `finalize`, `binding` …; empty for the object itself."""
    dry_run: bool = False
    companions: list[Proposal] = field(default_factory=list)
    """Proposals that must be appended together with the object: allocations, and their release."""
    warnings: list[str] = field(default_factory=list)
    """The texts of the response's `Warning` headers, without code and agent."""
    old: Unstructured | None = None
    """The stored object, which must not be changed; None on creation."""
    uid: str = ""
    """The user's uid, if it is known."""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further attributes of the user."""
    sent: Callable[[], Any] | None = None
    """Decodes the body again if it is an object: only the body distinguishes an empty list from an absent one."""

    def sent_at(self, *path: str | int) -> Any:
        """Return the body's value at a path of fields and indexes; None if it has none there or is not an object."""
        return None if self.sent is None else at(self.sent(), *path)


class Strategy:
    """The rules of a kind beyond its schema. The base class has no further rules, as most kinds."""

    allow_create_on_update = False
    """Whether a PUT of an object that does not exist creates it."""
    allow_unconditional_update = True
    """Whether a PUT may omit metadata.resourceVersion."""
    has_generation = False
    """Whether metadata.generation counts changes of the desired state (everything except metadata and status)."""
    has_status = False
    """Whether writes to the object ignore `status`, and writes to `/status` ignore all else; `engine.kinds` sets it for
    every kind with a status subresource.
    """
    status_keeps: tuple[str, ...] = ()
    """The metadata fields that a write to `/status` does not change: `reset_fields.METADATA`, or some of these."""
    returns_deleted = False
    """Whether an immediate DELETE returns the object instead of a `Status`."""
    own_preconditions = False
    """Whether Kubernetes checks the preconditions of its deletions in the kind's own storage, with another message."""
    revalidates: int = 1
    """How many times an update of the object repeats the validation of a creation, including metadata. It decides how
    often an error of metadata is listed (`validation.metadata.update_errors`).
    """
    checks_metadata = True
    """Whether the kind validates metadata itself. If not, only the generic layer does, and only for objects without
    other errors (Kubernetes' `Validate` of the kind does not call `ValidateObjectMeta`).
    """
    compares_metadata = True
    """Whether the kind validates changes of metadata itself, besides the generic layer (Kubernetes' `ValidateUpdate` of
    the kind calls `ValidateObjectMetaUpdate`).
    """
    name_check: NameCheck = staticmethod(subdomain_name)
    """Validates the names of its objects; see `validation.names`."""
    any_finalizer = False
    """Whether metadata.finalizers may contain names without a domain that Kubernetes does not know."""
    status_on_create = False
    """Whether a creation may set the status, although `has_status` is true."""
    default_propagation = "Background"
    """The default handling of dependents on deletion: `Background` or `Orphan`. Empty if the kind has no dependents,
    whatever the deletion's options are (Events).
    """
    default_propagation_warnings: tuple[str, ...] = ()
    """The warnings for a deletion that does not set the propagation policy."""
    fields: tuple[str, ...] = ()
    """The selectable fields besides metadata.name and metadata.namespace; `selectable` returns their values."""

    def validation_cost(self, body: bytes) -> int:
        """Return the relative validation cost of one byte of this object, as sent or as stored; 1 is usual."""
        return 1

    def default(self, obj: Unstructured) -> None:
        """Set defaults for missing fields, in place (Kubernetes' SetDefaults functions); idempotent."""

    def default_status(self, obj: Unstructured) -> None:
        """Set the defaults for a patch of the status, whose spec is the stored one; it may do more."""
        self.default(obj)

    def begin_create(self, ctx: Context, obj: Unstructured) -> None:
        """Allocate resources such as addresses; raises an `ApiError` if that fails."""

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Drop or set fields that a creation may not choose. The engine drops `status` if `has_status`."""

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Return the errors of `obj` itself, on creation and (with `validate_update`) on every update."""
        return []

    def begin_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Allocate and release resources; raises an `ApiError` if that fails."""

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Restore the fields that an update may not change.

        `ctx.subresource` names the subresource, "status" included.
        """

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Return the errors of changing `old` into `new`; also called for subresources, see `ctx`."""
        return []

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return warnings for values that are allowed but not advisable, in Kubernetes' words."""
        return []

    def canonicalize(self, obj: Unstructured) -> None:
        """Convert a valid object into its final form, in place; only here is a generated name known."""

    def conceal(self, obj: Unstructured) -> None:
        """Remove the fields that Kubernetes stores and never returns; admission has seen them."""

    def grace_period(self, obj: Object, asked: int | None) -> int | None:
        """Return the grace period of a deleted object in seconds, None if its kind has no graceful deletion.

        `asked` is DeleteOptions.gracePeriodSeconds. 0 removes the object at once, if no finalizer holds it.
        """
        return None

    def begin_termination(self, ctx: Context, obj: Unstructured) -> None:
        """Change an object that a DELETE leaves in place, once; its metadata already says that it is terminating."""

    def begin_delete(self, ctx: Context, obj: Object) -> None:
        """Release the object's allocations, as companions of its deletion."""

    def finalizers(self, obj: Object) -> Sequence[str]:
        """Return the finalizers outside metadata.finalizers that hold a terminating object.

        For a Namespace these are spec.finalizers.
        """
        return ()

    def field_refusal(self, field: str) -> str:
        """Return the error message for a field that is not selectable (`AddFieldLabelConversionFunc` of the kind)."""
        if self.fields:
            return f"field label not supported: {field}"
        return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the values of `fields` for `obj`; an absent field is the empty string."""
        return {}
