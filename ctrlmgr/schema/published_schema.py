"""Returns the published structure of Kubernetes' API, which is part of this package and read on first use.

- `definitions`: the definitions of the OpenAPI v2 document of Kubernetes 1.36, without descriptions;
- `openapi`: the rest of the OpenAPI document (paths, parameters, info);
- `go`: facts about the Go types that OpenAPI lacks: for each definition its fields in Go's order (embedded structs
  inlined, as in JSON), each with its Go type and whether a zero value is omitted (`omitempty`, `omitzero`);
- `discovery`: the API groups (`/apis`), and the resources of each group's versions (`/apis/apps/v1`).

All callers share the results of these functions, and must not change them.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")


class GoField(NamedTuple):
    """One field of a Go struct, as Go's encoding/json handles it."""

    name: str
    """The name of the field in JSON."""
    type: str
    """The field's type as Go prints it: `*v1.Probe`, `[]string`, `v1.PodPhase`."""
    omitted: bool
    """Whether the field is omitted if it has the zero value; always False for structs, on which `omitempty` has no
    effect.
    """


def _read(name: str, type_: type[T]) -> T:
    packed = (files(__package__) / "data" / f"{name}.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=type_)


@cache
def definitions() -> Mapping[str, msgspec.Raw]:
    """Return each definition of the OpenAPI v2 document as undecoded JSON, by name.

    The definitions are not decoded here, because most of them are never used.
    """
    return _read("definitions", dict[str, msgspec.Raw])


@cache
def go() -> Mapping[str, msgspec.Raw]:
    """Return the Go fields of each definition as JSON (see `go_fields`); leaf types such as Time are omitted."""
    return _read("go", dict[str, msgspec.Raw])


_decode_fields = msgspec.json.Decoder(tuple[GoField, ...]).decode


def go_fields(definition: str) -> tuple[GoField, ...] | None:
    """Return the fields of a definition's Go struct, in Go's order; None if its Go type is not a struct."""
    raw = go().get(definition)
    return None if raw is None else _decode_fields(raw)


@cache
def openapi() -> Mapping[str, Any]:
    """Return the OpenAPI v2 document without its definitions."""
    return _read("openapi", dict[str, Any])


@cache
def discovery() -> Mapping[str, Any]:
    """Return Kubernetes' response at each path of its discovery API."""
    return _read("discovery", dict[str, Any])
