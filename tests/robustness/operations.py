"""Reads the operations that a server offers from the server's OpenAPI documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

METHODS = ("get", "post", "put", "patch", "delete")


class Operation(NamedTuple):
    """One operation: a method of a path."""

    method: str
    path: str
    """The path of the operation, with placeholders such as `{namespace}`."""
    parameters: tuple[str, ...]
    """The query parameters of the operation."""
    body: str
    """The name of the definition of the request body; empty if the operation has no body."""
    media_types: tuple[str, ...]
    kind: Mapping[str, str]
    """The group, version and kind of the objects to which the operation applies."""
    action: str

    @property
    def collection(self) -> str:
        """The path of the collection that contains the operation's object."""
        head, found, _ = self.path.partition("/{name}")
        return head if found else self.path

    @property
    def is_watch(self) -> bool:
        """Return whether the response is a stream that lasts until a timeout; the path decides this."""
        return self.action.startswith("watch")


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield the operations of an OpenAPI v3 document."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield _operation(method, path, item[method], item.get("parameters", []))


def _operation(method: str, path: str, said: Mapping[str, Any], shared: list[Mapping[str, Any]]) -> Operation:
    parameters = [*shared, *said.get("parameters", [])]
    content = said.get("requestBody", {}).get("content", {})
    reference = next((each["schema"]["$ref"] for each in content.values()), "")
    return Operation(
        method=method.upper(),
        path=path,
        parameters=tuple(each["name"] for each in parameters if each["in"] == "query"),
        body=reference.rpartition("/")[2],
        media_types=tuple(content),
        kind=said.get("x-kubernetes-group-version-kind", {}),
        action=said.get("x-kubernetes-action", ""),
    )
