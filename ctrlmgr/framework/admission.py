"""Admission plugins of one's own: functions that change or refuse objects before they are stored.

Guarantees: the function is given an object of its own; what it changes of it is changed, and what its class does not
name stays as it was. What it raises that is not meant as a refusal fails the write with a 500 that names it: nothing
slips through because a plugin is broken. It may read the state on which the write is decided (`Write.cache`). It runs
while others wait, so it must not wait for anything itself.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import structlog

from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.errors import ApiError, InternalError
from ctrlmgr.framework.declaration import Declaration
from ctrlmgr.framework.model import Metadata, Untyped
from ctrlmgr.framework.reading import Cache, ViewCache

log = structlog.get_logger(__name__)


_KNOWN = frozenset(Metadata.__struct_encode_fields__)
"""Fields of the metadata that `Metadata` has."""


class Refused(Exception):
    """Raised by an admission function for what it does not let pass: the caller is answered 403 with these words."""


class Write(NamedTuple):
    """The write that an admission function is asked about."""

    operation: str
    """`CREATE`, `UPDATE` or `DELETE`."""
    name: str
    """Empty while a generated name is not known yet."""
    namespace: str
    user: str
    groups: Sequence[str]
    old: Any
    """The object before; None on creation."""
    dry_run: bool
    warnings: list[str]
    cache: Cache
    """All objects, of any kind, as they are where the write is decided."""

    def warn(self, text: str) -> None:
        """Tell the caller something, as `kubectl` shows warnings."""
        self.warnings.append(text)


Admit = Callable[[Any, Write], None]


@dataclass(frozen=True)
class AppAdmission:
    """One admission function of an app, made by `App.admission`; calling it calls the function."""

    name: str
    declaration: Declaration
    function: Admit
    operations: tuple[Verb, ...]
    subresource: str = ""
    validates: bool = False
    """Whether it only judges: it then sees the object as it will be stored."""
    on: tuple[str, ...] = ()
    """The fields, such as `spec.replicas`, of which an update must change one; empty for every update."""

    def __call__(self, obj: Any, write: Write) -> None:
        """Decide."""
        self.function(obj, write)

    @property
    def where(self) -> str:
        """Where it is declared."""
        return f"{self.function.__module__}:{self.function.__qualname__}"


def plugin_of(declared: AppAdmission) -> Plugin:
    """Return the plugin that calls an admission function."""
    made: type[_FunctionPlugin] = type(declared.name, (_FunctionPlugin,), {"name": declared.name})
    return made(declared)


class _FunctionPlugin(Plugin):
    """Calls one function; its name is the function's."""

    def __init__(self, declared: AppAdmission) -> None:
        """Call `declared`."""
        self._declared = declared

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at what the function is declared for."""
        declared = self._declared
        return (
            resource == declared.declaration.resource
            and subresource == declared.subresource
            and operation in declared.operations
        )

    def admit(self, attributes: Attributes) -> None:
        """Have the function change the object."""
        if not self._declared.validates:
            self._call(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Have the function judge the object."""
        if self._declared.validates:
            self._call(attributes)

    def _call(self, attributes: Attributes) -> None:
        if self._passes(attributes):
            return
        fields = attributes.object if attributes.object is not None else attributes.old
        assert fields is not None  # a write is of one or the other
        requester = attributes.requester
        try:
            obj = self._read(fields)
            before = _plain(obj)
            old = None if attributes.old is None else self._read(attributes.old)
            write = Write(
                str(attributes.operation),
                attributes.name,
                attributes.namespace,
                requester.user,
                requester.groups,
                old,
                attributes.dry_run,
                attributes.warnings,
                ViewCache(attributes.view, self.name),
            )
            self._declared.function(obj, write)
            after = _plain(obj)
        except Refused as refusal:
            raise attributes.forbidden(str(refusal) or f"admission plugin {self.name} refuses it") from refusal
        except ApiError:
            raise
        except Exception as error:
            raise self._failed(error) from error
        if attributes.object is not None and not self._declared.validates:
            attributes.object = _changed(fields, before, after)
            if before != after:
                attributes.changed(self.name)

    def _passes(self, attributes: Attributes) -> bool:
        """Whether a write is an update that leaves alone every field that the function is about."""
        new, old = attributes.object, attributes.old
        if not self._declared.on or attributes.operation is not Verb.UPDATE or new is None or old is None:
            return False
        return all(_field(new, each) == _field(old, each) for each in self._declared.on)

    def _read(self, fields: Mapping[str, Any]) -> Any:
        """Return fields as the class that was declared; the caller may do with them as it likes."""
        declared = self._declared.declaration.cls
        if declared is not None:
            return msgspec.convert(fields, declared)
        own = copy.deepcopy(dict(fields))
        return Untyped(msgspec.convert(own["metadata"], Metadata), own)

    def _failed(self, error: Exception) -> InternalError:
        """Return the 500 for a function that is broken; it says which one, and where."""
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({frames[-1].filename}:{frames[-1].lineno})"
        log.error("admission function failed", plugin=self.name, declared=self._declared.where, exc_info=error)
        problem = InternalError(
            f'Internal error occurred: admission plugin "{self.name}" failed: {type(error).__name__}: {error}{where}'
        )
        problem.is_final = True
        return problem


def _field(fields: Any, path: str) -> Any:
    """Return what is at a path such as `spec.replicas`; None if nothing is."""
    for part in path.split("."):
        fields = fields.get(part) if isinstance(fields, dict) else None
    return fields


def _plain(obj: Any) -> Unstructured:
    """Return an object as plain data."""
    if isinstance(obj, Untyped):
        rest = {key: value for key, value in obj.fields["metadata"].items() if key not in _KNOWN}
        metadata = {**rest, **msgspec.to_builtins(obj.metadata)}
        return copy.deepcopy({**obj.fields, "metadata": metadata})
    plain: Unstructured = msgspec.to_builtins(obj)
    return plain


def _changed(fields: Unstructured, before: Unstructured, after: Unstructured) -> Unstructured:
    """Return `fields` with what has become of `before` in `after`."""
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
