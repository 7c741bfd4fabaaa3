"""Admission functions of apps change or refuse objects before they are stored.

Guarantees: an admission function is called with a copy of the object. The function's changes of the copy are applied to
the object, and fields that the class does not declare stay unchanged. If the function raises an exception other than
`Refused`, the write fails with a 500 that contains the exception. Therefore a broken function allows no write. An
admission function may read the state on which the write is decided (`Write.cache`). An admission function must not
wait, because other writes are blocked while it runs.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import structlog

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.errors import ApiError, InternalError
from ctrlmgr.framework.cached_objects import Cache, ViewCache
from ctrlmgr.framework.class_declaration import Declaration
from ctrlmgr.framework.typed_kinds import Metadata, Untyped

log = structlog.get_logger(__name__)


_KNOWN = frozenset(Metadata.__struct_encode_fields__)
"""The names of the metadata fields that `Metadata` declares."""


class Refused(Exception):
    """An admission function raises this error to refuse a write; the response is a 403 with the error's message."""


class Write(NamedTuple):
    """The write about which an admission function decides."""

    operation: str
    """The operation: `CREATE`, `UPDATE` or `DELETE`."""
    name: str
    """The name of the object; empty if the server generates the name later."""
    namespace: str
    user: str
    groups: Sequence[str]
    old: Any
    """The previous state of the object; None if the object is created."""
    dry_run: bool
    warnings: list[str]
    cache: Cache
    """The objects of all kinds, in the state on which the write is decided."""

    def warn(self, text: str) -> None:
        """Add a warning to the response; `kubectl` prints the warning."""
        self.warnings.append(text)


Admit = Callable[[Any, Write], None]


@dataclass(frozen=True)
class AppAdmission:
    """One admission function of an app, which `App.admission` creates; calling the instance calls the function."""

    name: str
    declaration: Declaration
    function: Admit
    operations: tuple[Verb, ...]
    subresource: str = ""
    validates: bool = False
    """Whether the admission function only validates.

    A validating function gets the object in the form that will be stored.
    """
    on: tuple[str, ...] = ()
    """The fields, such as `spec.replicas`, whose changes cause a call.

    The function is called only for updates that change one of these fields; if empty, for all updates.
    """

    def __call__(self, obj: Any, write: Write) -> None:
        """Call the admission function."""
        self.function(obj, write)

    @property
    def where(self) -> str:
        """Return the file and line where the admission function is declared."""
        return f"{self.function.__module__}:{self.function.__qualname__}"


def plugin_of(declared: AppAdmission) -> Plugin:
    """Return an admission plugin that calls one admission function of an app."""
    made: type[_FunctionPlugin] = type(declared.name, (_FunctionPlugin,), {"name": declared.name})
    return made(declared)


class _FunctionPlugin(Plugin):
    """An admission plugin that calls one admission function of an app, and has the function's name."""

    def __init__(self, declared: AppAdmission) -> None:
        """Create a plugin that calls the function of `declared`."""
        self._declared = declared

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the admission function is declared for the operation of this write."""
        declared = self._declared
        return (
            resource == declared.declaration.resource
            and subresource == declared.subresource
            and operation in declared.operations
        )

    def admit(self, attributes: Attributes) -> None:
        """Call the admission function, which may change the object."""
        if not self._declared.validates:
            self._call(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Call the admission function to validate the object."""
        if self._declared.validates:
            self._call(attributes)

    def _call(self, attributes: Attributes) -> None:
        declared, requester = self._declared, attributes.requester
        write = Write(
            str(attributes.operation),
            attributes.name,
            attributes.namespace,
            requester.user,
            requester.groups,
            None,
            attributes.dry_run,
            attributes.warnings,
            ViewCache(attributes.view, self.name),
        )
        try:
            changed = decide(declared, attributes.object, attributes.old, write)
        except Refused as refusal:
            raise attributes.forbidden(refusal_text(declared, refusal)) from refusal
        except ApiError:
            raise
        except Exception as error:
            raise failed(declared, error) from error
        if changed is not attributes.object:
            attributes.object = changed
            attributes.changed(self.name)


def decide(
    declared: AppAdmission, new: Unstructured | None, old: Unstructured | None, write: Write
) -> Unstructured | None:
    """Call an admission function for a write of `new` over `old`, and return the object to store.

    If the function does not change the object, `new` itself is returned. `write` does not contain the previous object;
    this function adds it. Raises the errors of the function, and `msgspec.ValidationError` for an object that does not
    match the declared class.
    """
    if _passes(declared, new, old, write):
        return new
    fields = new if new is not None else old
    assert fields is not None  # A write has a new or an old object.
    obj = _read(declared, fields)
    before = _plain(obj)
    declared.function(obj, write._replace(old=None if old is None else _read(declared, old)))
    return new if new is None or declared.validates else _changed(new, before, _plain(obj))


def refusal_text(declared: AppAdmission, refusal: Refused) -> str:
    """Return the message of the 403 response for a refusal by an admission function."""
    return str(refusal) or f"admission plugin {declared.name} refuses it"


def failed(declared: AppAdmission, error: Exception) -> InternalError:
    """Return the 500 response for an admission function that raised `error`, with the line that raised it.

    Log the error of the admission function.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})"
    log.error("admission function failed", plugin=declared.name, declared=declared.where, exc_info=error)
    problem = InternalError(
        f'Internal error occurred: admission plugin "{declared.name}" failed: {type(error).__name__}: {error}{where}'
    )
    problem.is_final = True
    return problem


def _passes(declared: AppAdmission, new: Unstructured | None, old: Unstructured | None, write: Write) -> bool:
    """Return whether a write is an update that changes none of the fields on which the admission function depends."""
    if not declared.on or write.operation != Verb.UPDATE or new is None or old is None:
        return False
    return all(_field(new, each) == _field(old, each) for each in declared.on)


def _read(declared: AppAdmission, fields: Mapping[str, Any]) -> Any:
    """Decode an object as a new instance of the declared class, which the caller may change."""
    cls = declared.declaration.cls
    if cls is not None:
        return msgspec.convert(fields, cls)
    own = copy.deepcopy(dict(fields))
    return Untyped(msgspec.convert(own["metadata"], Metadata), own)


def _field(fields: Any, path: str) -> Any:
    """Return the value at a path such as `spec.replicas`; None if the object has no such value."""
    for part in path.split("."):
        fields = fields.get(part) if isinstance(fields, dict) else None
    return fields


def _plain(obj: Any) -> Unstructured:
    """Return an object as dictionaries, lists and scalars."""
    if isinstance(obj, Untyped):
        rest = {key: value for key, value in obj.fields["metadata"].items() if key not in _KNOWN}
        metadata = {**rest, **msgspec.to_builtins(obj.metadata)}
        return copy.deepcopy({**obj.fields, "metadata": metadata})
    plain: Unstructured = msgspec.to_builtins(obj)
    return plain


def _changed(fields: Unstructured, before: Unstructured, after: Unstructured) -> Unstructured:
    """Return a copy of `fields` to which the differences between `before` and `after` are applied."""
    if before == after:
        return fields
    merged: Unstructured = _merged(fields, before, after)
    return merged


def _merged(fields: Any, before: Any, after: Any) -> Any:
    if before == after:
        return fields
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return after
    merged = dict(fields) if isinstance(fields, dict) else {}
    for key in before.keys() - after.keys():
        merged.pop(key, None)
    for key, value in after.items():
        if key not in before or before[key] != value:
            merged[key] = _merged(merged.get(key), before.get(key), value)
    return merged
