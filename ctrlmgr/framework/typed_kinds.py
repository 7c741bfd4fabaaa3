"""A kind of the Kubernetes API is a subclass of `Kind`, whose annotations declare the object's fields.

Guarantees:

- The class statement's keywords (`api_version`, `columns` and so on) are checked when the class is created.
- Fields are camelCase in JSON and snake_case in Python. Fields that the class does not declare are ignored when an
  object is decoded, but kept when it is written with server-side apply.
- Decoding an object checks the constraints that its class declares; a violation raises `msgspec.ValidationError`.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal

import msgspec

from ctrlmgr.api.object import OwnerReference
from ctrlmgr.framework.class_declaration import Column, Declaration, Scale, declare
from ctrlmgr.framework.options_checks import check_list

NAMESPACED: Final = "Namespaced"


class ModelMeta(msgspec.StructMeta):
    """A metaclass that allows a struct as the default of a field; each object gets a separate copy of the struct."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        """Create the class of a struct, with copied defaults."""
        for field, value in namespace.items():
            if isinstance(value, msgspec.Struct):
                namespace[field] = msgspec.field(default_factory=partial(copy.deepcopy, value))
        return super().__new__(mcls, name, bases, namespace, **config)


class Model(msgspec.Struct, rename="camel", omit_defaults=True, metaclass=ModelMeta):
    """A part of an object: a struct whose fields are camelCase in JSON.

    A field that equals its default is not written, because the CustomResourceDefinition has the same default.
    """


class Metadata(Model, kw_only=True):
    """The metadata of every object (meta/v1 ObjectMeta), with the fields that controllers use.

    Times are RFC 3339 strings.
    """

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class Condition(Model, kw_only=True):
    """One condition of an object (meta/v1 Condition); `status` is `True`, `False` or `Unknown`."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | None = None


class Status(Model, kw_only=True, omit_defaults=False):
    """A status with the usual fields: conditions and the observed generation.

    Declare a subclass for additional status fields; each additional field needs a default.
    """

    observed_generation: int | None = None
    """The generation of the object that the controller has reconciled last; the framework sets it."""
    conditions: list[Condition] = []


class KindMeta(ModelMeta):
    """The metaclass of kinds, which reads the keywords of the class statement."""

    declaration: Declaration

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        api_version: str = "",
        kind: str = "",
        plural: str = "",
        scope: Literal["Namespaced", "Cluster"] = "Namespaced",
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        columns: Sequence[Column] = (),
        scale: Scale | None = None,
        existing: bool = False,
        **config: Any,
    ) -> KindMeta:
        """Create the class; raises TypeError if it is not a valid kind."""
        _check_keywords(name, config)
        check_list("short_names", short_names, f"[{short_names!r}]")
        check_list("categories", categories, f"[{categories!r}]")
        check_list("columns", columns, '[Column("Size", ".spec.size")]', of=Column)
        if scope not in (NAMESPACED, "Cluster"):
            raise TypeError(f"{name}: scope={scope!r} is neither Namespaced nor Cluster")
        cls: KindMeta = super().__new__(mcls, name, bases, namespace, **config)
        if api_version:
            cls.declaration = declare(
                cls,
                api_version,
                kind or name,
                plural=plural,
                namespaced=scope == NAMESPACED,
                short_names=tuple(short_names),
                categories=tuple(categories),
                columns=tuple(columns),
                scale=scale,
                existing=existing,
            )
        return cls


_KEYWORDS: Final = (
    *("api_version", "kind", "plural", "scope", "short_names", "categories", "columns", "scale", "existing"),
    *("tag", "tag_field", "omit_defaults", "forbid_unknown_fields", "frozen", "eq", "order", "kw_only", "dict", "gc"),
    *("repr_omit_defaults", "array_like", "weakref", "cache_hash", "rename"),
)
"""The keywords of class statements: the keywords of kinds, followed by the keywords of structs."""


def _check_keywords(name: str, config: Mapping[str, Any]) -> None:
    """Raise TypeError for a keyword that no class statement accepts; the message suggests a similar keyword."""
    unknown = next((each for each in config if each not in _KEYWORDS), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, _KEYWORDS, 1)
        meant = f"did you mean {near[0]}=?" if near else f"there are {', '.join(_KEYWORDS[:9])}"
        raise TypeError(f"{name}: a kind has no argument {unknown}=; {meant}")


class Described:
    """Properties that return the metadata of an object."""

    __slots__ = ()

    metadata: Metadata

    @property
    def name(self) -> str:
        """Return the object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Return the object's namespace; empty for cluster-scoped objects."""
        return self.metadata.namespace

    @property
    def labels(self) -> dict[str, str]:
        """Return the object's labels."""
        return self.metadata.labels

    @property
    def is_terminating(self) -> bool:
        """Return whether the deletion of the object was requested."""
        return self.metadata.deletion_timestamp is not None


class Kind(Described, msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, metaclass=KindMeta):
    """The base class of kinds; an instance is an object of the Kubernetes API.

    `class Shop(Kind, api_version="example.com/v1"): spec: ShopSpec` declares a kind. Class keywords: `kind` (by default
    the class's name), `plural`, `scope` (`Namespaced` or `Cluster`), `short_names`, `categories`, `columns`, `scale`;
    `existing` (True if the kind is defined elsewhere, as Kubernetes' own kinds are). If the class has a field `status`,
    the kind has the status subresource.
    """

    declaration: ClassVar[Declaration]

    metadata: Metadata = Metadata()

    def __init_subclass__(cls, **declared: Any) -> None:
        """Accept the keywords of `KindMeta`; this method exists for type checkers."""


class Untyped(Described, msgspec.Struct):
    """An object of a kind without a class, such as `v1/ConfigMap`, with its fields as plain data."""

    metadata: Metadata
    fields: dict[str, Any]

    def __getitem__(self, field: str) -> Any:
        """Return a top-level field such as `data` or `spec`; raises KeyError if the object does not have it."""
        return self.fields[field]

    def get(self, field: str, default: Any = None) -> Any:
        """Return a top-level field such as `data`, or `default` if the object does not have it."""
        return self.fields.get(field, default)
