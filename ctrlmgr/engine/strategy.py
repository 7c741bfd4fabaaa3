"""What a kind does beyond its schema: the hooks that the engine calls on a write's way into the log.

Guarantees: a strategy decides, it never writes, waits or reads a clock. What it needs is in its `Context`; what
it wants appended beside the object goes into `Context.companions`, so that both are in the log or neither is.

The order of calls is that of apiserver's `registry/generic/registry/store.go` and `registry/rest`:

    create:  default → begin_create → prepare_for_create → (generated name) → validate → warnings → canonicalize
    update:  default → begin_update → prepare_for_update → validate + validate_update → warnings → canonicalize
    delete:  (graceful deletion, finalizers) → begin_termination, when the object stays for now, or begin_delete, when
             it goes

Admission (`engine.attributes`) changes a write before `begin_create` or `begin_update`, and judges it after
`canonicalize`; `conceal` comes last.

All of them take `Unstructured` objects that are theirs to change (`new`, `obj`) or must be left alone (`old`).
Object metadata common to all kinds is defaulted and validated by the engine, not here (`validation.metadata`, with
the strategy's `name_check`, `any_finalizer` and `revalidates`), ahead of what the strategy finds.
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
from ctrlmgr.engine.validation.names import NameCheck, subdomain_name
from ctrlmgr.eventlog.event import Proposal


class View(Protocol):
    """The current state, as a strategy may read it."""

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return one object, None if there is none."""

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace (None: of all), by key."""


class State(View, Protocol):
    """A view that says how current it is: writes are decided on it, and again when the log knows better."""

    @property
    def revision(self) -> Revision:
        """Everything up to here is in it; it may hold later changes of single objects, too."""

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return a revision that differs if any of these resources has changed since one asked before.

        Where that is not known at once it is `revision`, and so differs more often.
        """


class WrittenKind(Protocol):
    """What a strategy and those who call it know of the kind that is written; an `engine.kind.Kind` is one."""

    @property
    def resource(self) -> Resource:
        """Its resource, in the version of the request."""

    @property
    def storage(self) -> Resource:
        """The resource it is stored as, which refusals name the group of."""

    @property
    def api_version(self) -> str:
        """The version of the request."""

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in namespaces."""

    @property
    def strategy(self) -> Strategy:
        """What it does beyond its schema."""


@dataclass
class Context:
    """One write, as its strategy sees it."""

    kind: WrittenKind
    """What is written; for a subresource the kind it belongs to."""
    view: View
    """The state the write is decided on; conflicting changes to the object or its companions make it start over."""
    now: str
    """The time as RFC 3339 with seconds, for timestamps."""
    random: Random
    user: str = ""
    subresource: str = ""
    """`status`, `finalize`, `binding` … or empty for the object itself."""
    dry_run: bool = False
    companions: list[Proposal] = field(default_factory=list)
    """What must be appended together with the object: allocations, and their release."""
    warnings: list[str] = field(default_factory=list)
    """What the caller is told in `Warning` headers, without the code and agent."""
    old: Unstructured | None = None
    """The object as it is stored, not to be changed; None on creation."""
    uid: str = ""
    """The user's, if it is known."""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What else is known of the user."""
    sent: Callable[[], Any] | None = None
    """Reads the body again if it is an object: only the body distinguishes an empty list from an absent one."""

    def sent_at(self, *path: str | int) -> Any:
        """Return what the body has at a path of fields and indexes; None if it has nothing there or is no object."""
        return None if self.sent is None else at(self.sent(), *path)


class Strategy:
    """What a kind does that its schema does not say; the base class is what most kinds do: nothing more."""

    allow_create_on_update = False
    """Whether a PUT of an object that does not exist creates it."""
    allow_unconditional_update = True
    """Whether a PUT may leave metadata.resourceVersion out."""
    has_generation = False
    """Whether metadata.generation counts changes of the desired state (everything but metadata and status)."""
    has_status = False
    """Whether writes to the object itself leave `status` alone, and writes to `/status` all else; `engine.kinds`
    sets it for every kind with a status subresource."""
    status_keeps: tuple[str, ...] = ()
    """The fields of metadata that a write to `/status` leaves alone: `reset_fields.METADATA`, or some of these."""
    returns_deleted = False
    """Whether an immediate DELETE answers with the object instead of a `Status`."""
    own_preconditions = False
    """Whether its deletion's preconditions are checked by a storage of its own in Kubernetes, in other words."""
    revalidates: int = 1
    """How many times an update of the object itself checks again all that its creation did, metadata included; it
    decides how often an error of metadata is listed (`validation.metadata.update_errors`)."""
    checks_metadata = True
    """Whether the kind validates metadata itself. If not, only the generic layer does, and only objects without other
    errors (Kubernetes' `Validate` of the kind does not call `ValidateObjectMeta`)."""
    compares_metadata = True
    """Whether the kind validates changes of metadata itself, besides the generic layer (Kubernetes' `ValidateUpdate` of
    the kind calls `ValidateObjectMetaUpdate`)."""
    name_check: NameCheck = staticmethod(subdomain_name)
    """What its objects may be called; see `validation.names`."""
    any_finalizer = False
    """Whether metadata.finalizers may hold names without a domain that Kubernetes does not know."""
    status_on_create = False
    """Whether a creation brings its status along, although `has_status`."""
    default_propagation = "Background"
    """What becomes of its dependents if a deletion does not say: `Background` or `Orphan`. Empty: it has none, whatever
    a deletion says (Events)."""
    default_propagation_warnings: tuple[str, ...] = ()
    """What a client is told whose deletion does not say."""
    fields: tuple[str, ...] = ()
    """The field selectors besides metadata.name and metadata.namespace that `selectable` answers."""

    def validation_cost(self, body: bytes) -> int:
        """Return the relative validation cost of a byte of this object, as sent or as stored; 1 is the usual one."""
        return 1

    def default(self, obj: Unstructured) -> None:
        """Fill in what the caller left out, in place (Kubernetes' SetDefaults functions); idempotent."""

    def default_status(self, obj: Unstructured) -> None:
        """Do that for a patch of the status, whose spec is the one that is stored; it may do more."""
        self.default(obj)

    def begin_create(self, ctx: Context, obj: Unstructured) -> None:
        """Allocate; raises an `ApiError` when that cannot be done."""

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Drop or set what a creation may not choose. `status` is dropped by the engine if `has_status`."""

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Return what is wrong with `obj` as such, on creation and (with `validate_update`) on every update."""
        return []

    def begin_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Allocate and release; raises an `ApiError` when that cannot be done."""

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Keep what an update may not change silently; `ctx.subresource` says which one, "status" included."""

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Return what is wrong with changing `old` into `new`; called for subresources too, see `ctx`."""
        return []

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return what is allowed but unwise, in Kubernetes' words."""
        return []

    def canonicalize(self, obj: Unstructured) -> None:
        """Give a valid object its final form, in place; only here is a generated name known."""

    def conceal(self, obj: Unstructured) -> None:
        """Take away what Kubernetes stores and never shows; admission has seen it."""

    def grace_period(self, obj: Object, asked: int | None) -> int | None:
        """Return the seconds to leave a deleted object in place for, None when its kind knows no graceful deletion.

        `asked` is DeleteOptions.gracePeriodSeconds. 0 removes at once (if no finalizer holds it).
        """
        return None

    def begin_termination(self, ctx: Context, obj: Unstructured) -> None:
        """Change an object that a DELETE leaves in place, once: its metadata says already that it is terminating."""

    def begin_delete(self, ctx: Context, obj: Object) -> None:
        """Release what the object holds, as companions of its deletion."""

    def finalizers(self, obj: Object) -> Sequence[str]:
        """Return what besides metadata.finalizers holds a terminating object (Namespace: spec.finalizers)."""
        return ()

    def field_refusal(self, field: str) -> str:
        """Say that `field` cannot be selected by, as the kind's `AddFieldLabelConversionFunc` does."""
        if self.fields:
            return f"field label not supported: {field}"
        return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the values of `fields` for `obj`; what is absent is the empty string."""
        return {}
