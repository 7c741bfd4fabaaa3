"""Returns the published structure of Kubernetes' API from files of this package; each file is read at first use.

- `definitions`: the definitions of the OpenAPI v2 document of Kubernetes 1.36, without descriptions;
- `openapi`: the rest of the OpenAPI document (paths, parameters, info);
- `go`: facts about the Go types that OpenAPI lacks: for each definition its fields in Go's order (embedded structs
  inlined, as in JSON), each with its Go type and whether a zero value is omitted (`omitempty`, `omitzero`);
- `discovery`: the API groups (`/apis`), and the resources of each group's versions (`/apis/apps/v1`);
- `optional`: all of this, and the protobuf messages, for the versions that Kubernetes serves only if its command line
  enables them.

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
    """Whether Go omits the field if its value is the zero value. Go's `omitempty` has no effect on structs, so
    `omitted` is False for structs.
    """


class Messages(msgspec.Struct, frozen=True):
    """The structure of Kubernetes' protobuf format."""

    kinds: dict[str, str]
    """The name of each kind's message, by `apiVersion/kind`."""
    messages: dict[str, list[tuple[int, str, str]]]
    """The fields of each message as (number, JSON name, type)."""


class OptionalVersion(msgspec.Struct, frozen=True):
    """The published structure of one version of an API group that Kubernetes does not serve by default."""

    definitions: dict[str, msgspec.Raw]
    go: dict[str, msgspec.Raw]
    paths: dict[str, Any]
    """The version's paths in the OpenAPI document."""
    discovery: dict[str, Any]
    """The list of the version's resources, as discovery returns it."""
    protobuf: Messages


def _read(name: str, type_: type[T]) -> T:
    packed = (files(__package__) / "data" / f"{name}.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=type_)


@cache
def definitions() -> Mapping[str, msgspec.Raw]:
    """Return each definition of the OpenAPI v2 document as undecoded JSON, by name.

    The function does not decode the definitions, because most definitions are never used.
    """
    return _read("definitions", dict[str, msgspec.Raw])


@cache
def optional() -> Mapping[str, OptionalVersion]:
    """Return the structure of each version that Kubernetes does not serve by default, by the version's name.

    The versions of a group are in the order of discovery.
    """
    return _read("optional", dict[str, OptionalVersion])


@cache
def all_definitions() -> Mapping[str, msgspec.Raw]:
    """Return `definitions` together with the definitions of all optional versions."""
    found = dict(definitions())
    for version in optional().values():
        found.update(version.definitions)
    return found


@cache
def messages() -> Messages:
    """Return the structure of all kinds in protobuf, including the kinds of optional versions."""
    found = _read("protobuf", Messages)
    for version in optional().values():
        found.kinds.update(version.protobuf.kinds)
        found.messages.update(version.protobuf.messages)
    return found


@cache
def resource_lists() -> Mapping[str, Any]:
    """Return the resources of every version, optional versions included, by the path of the version's discovery."""
    served = {path: each for path, each in discovery().items() if "resources" in each}
    return served | {f"/apis/{name}": version.discovery for name, version in optional().items()}


@cache
def go() -> Mapping[str, msgspec.Raw]:
    """Return the Go fields of each definition as JSON (see `go_fields`); leaf types such as Time are omitted.

    The result includes the definitions of optional versions.
    """
    found = _read("go", dict[str, msgspec.Raw])
    for version in optional().values():
        found.update(version.go)
    return found


_decode_fields = msgspec.json.Decoder(tuple[GoField, ...]).decode


def go_fields(definition: str) -> tuple[GoField, ...] | None:
    """Return the fields of a definition's Go struct, in Go's order; None if the definition's Go type is no struct."""
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
