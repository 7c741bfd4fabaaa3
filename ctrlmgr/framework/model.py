"""Kinds as typed classes: a subclass of `Kind` is a kind of the Kubernetes API, its fields are the object's.

Guarantees:
- What a class says of itself (`api_version`, `columns` and so on) is checked when the class is made.
- Fields are camelCase on the wire and snake_case here; what the class does not name is read over, and not lost: objects
  are written field by field (server-side apply), never as a whole.
- Reading an object as a class checks its constraints; what does not keep them raises `msgspec.ValidationError`.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal

import msgspec

from ctrlmgr.api.object import OwnerReference
from ctrlmgr.framework.declaration import Column, Declaration, Scale, declare

NAMESPACED: Final = "Namespaced"


class ModelMeta(msgspec.StructMeta):
    """Lets a struct be the default of a field: each object gets a copy of its own."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        """Make the class."""
        for field, value in namespace.items():
            if isinstance(value, msgspec.Struct):
                namespace[field] = msgspec.field(default_factory=partial(copy.deepcopy, value))
        return super().__new__(mcls, name, bases, namespace, **config)


class Model(msgspec.Struct, rename="camel", omit_defaults=True, metaclass=ModelMeta):
    """What objects consist of: a struct whose fields are camelCase on the wire.

    Fields that have their default are not written: the definition has the same default.
    """


class Metadata(Model, kw_only=True):
    """What every object has (meta/v1 ObjectMeta), as far as controllers care. Times are RFC 3339 texts."""

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
    """A status with what every good one has; subclass it, and give each field of your own a default."""

    observed_generation: int | None = None
    """The generation that the controller has seen; the framework sets it."""
    conditions: list[Condition] = []


class KindMeta(ModelMeta):
    """Reads what the class statement says of a kind."""

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
        """Make the class; raises TypeError for one that cannot be a kind."""
        _check_keywords(name, config)
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
"""The keywords of class statements: those of kinds, then those of structs."""


def _check_keywords(name: str, config: Mapping[str, Any]) -> None:
    """Raise TypeError for a keyword that no class statement takes, with the one that is probably meant."""
    unknown = next((each for each in config if each not in _KEYWORDS), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, _KEYWORDS, 1)
        meant = f"did you mean {near[0]}=?" if near else f"there are {', '.join(_KEYWORDS[:9])}"
        raise TypeError(f"{name}: a kind has no {unknown}=; {meant}")


class Described:
    """What the metadata of an object says of it."""

    __slots__ = ()

    metadata: Metadata

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Its namespace; empty for cluster-scoped objects."""
        return self.metadata.namespace

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        return self.metadata.labels

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None


class Kind(Described, msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, metaclass=KindMeta):
    """An object of the API. `class Shop(Kind, api_version="example.com/v1"): spec: ShopSpec` declares a kind.

    Class keywords: `kind` (by default the class's name), `plural`, `scope` (`Namespaced` or `Cluster`), `short_names`,
    `categories`, `columns`, `scale`; `existing` for a view of a kind that is defined elsewhere, as those of
    Kubernetes' own groups are anyway. A field `status` makes it a kind with a status of its own.
    """

    declaration: ClassVar[Declaration]

    metadata: Metadata = Metadata()

    def __init_subclass__(cls, **declared: Any) -> None:
        """Take what `KindMeta` takes: this is how type checkers learn of it."""


class Untyped(Described, msgspec.Struct):
    """An object of a kind that has no class here, `v1/ConfigMap` say: its fields as plain data."""

    metadata: Metadata
    fields: dict[str, Any]

    def __getitem__(self, field: str) -> Any:
        """Return a field at the top (`data`, `spec`); raises KeyError."""
        return self.fields[field]

    def get(self, field: str, default: Any = None) -> Any:
        """Return a field at the top, or `default`."""
        return self.fields.get(field, default)
