"""Decodes cached objects as instances of users' classes, or as plain data.

Guarantees: results are copies that the caller may change; the caches themselves are never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, overload

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.engine.strategy import View
from ctrlmgr.framework.class_declaration import Declaration, declaration_of
from ctrlmgr.framework.typed_kinds import Kind, Metadata, Untyped
from ctrlmgr.informer import Lister

K = TypeVar("K", bound=Kind)

_making = threading.Lock()  # If two threads create decoders of one struct at the same time, the process crashes.


@cache
def _decoder(cls: type[Any]) -> Callable[[bytes], Any]:
    with _making:
        return msgspec.json.Decoder(cls).decode


def read(declaration: Declaration, obj: Object) -> Any:
    """Return an object as an instance of its class, or as `Untyped` if its kind has no class.

    Raises `msgspec.ValidationError` if the object does not match the class.
    """
    if declaration.cls is not None:
        return _decoder(declaration.cls)(obj.wire())
    fields = obj.to_dict()
    return Untyped(msgspec.convert(fields["metadata"], Metadata), fields)


class Cache:
    """The caches of the kinds that a controller declares: its own kind, `owns`, `watches` and `reads`; thread-safe.

    A cache may be slightly outdated, so it may not contain the latest write yet.
    """

    def __init__(self, listers: Mapping[Resource, Lister], who: str) -> None:
        """Create a reader of these caches for the controller with the name `who`."""
        self._listers = listers
        self._who = who

    @overload
    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None: ...

    @overload
    def get(self, kind: str, name: str, namespace: str = "") -> Untyped | None: ...

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        """Return the object with the given name; None if no object has the name.

        Raises LookupError if the controller does not declare the kind.
        """
        declaration = declaration_of(kind)
        obj = self.lister(declaration).get(Key(namespace, name))
        return None if obj is None else read(declaration, obj)

    @overload
    def list(
        self, kind: type[K], namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[K]: ...

    @overload
    def list(
        self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Untyped]: ...

    def list(self, kind: Any, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """Return the objects of a namespace (None for all namespaces) that have all these labels, by key.

        Raises LookupError if the controller does not declare the kind.
        """
        declaration = declaration_of(kind)
        return [read(declaration, obj) for obj in self.lister(declaration).list(namespace, labels)]

    def lister(self, declaration: Declaration) -> Lister:
        """Return the store of a kind; raises LookupError if the controller does not declare the kind."""
        found = self._listers.get(declaration.resource)
        if found is None:
            raise LookupError(
                f"controller {self._who} has no cache of {declaration.label}: name it in owns=, watches= or reads="
            )
        return found


class ViewCache(Cache):
    """A cache of all kinds that reads the state of the log at one revision."""

    def __init__(self, view: View, who: str) -> None:
        """Create a reader of `view`; error messages contain the name `who`."""
        super().__init__({}, who)
        self._view = view

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        """Return the object with the given name; None if no object has the name."""
        declaration = declaration_of(kind)
        obj = self._view.get(declaration.resource, Key(namespace, name))
        return None if obj is None else read(declaration, obj)

    def list(self, kind: Any, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """Return the objects of a namespace (None for all namespaces) that have all these labels, by key."""
        declaration, required = declaration_of(kind), (labels or {}).items()
        found = self._view.list(declaration.resource, namespace)
        return [read(declaration, obj) for obj in found if required <= obj.labels.items()]
