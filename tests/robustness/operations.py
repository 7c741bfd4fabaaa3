"""What a server says can be asked of it: the operations of its OpenAPI documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

METHODS = ("get", "post", "put", "patch", "delete")


class Operation(NamedTuple):
    """A method of a path."""

    method: str
    path: str
    """With `{namespace}` and the like in it."""
    parameters: tuple[str, ...]
    """What its query may have."""
    body: str
    """The definition of what it takes, empty if it takes nothing."""
    media_types: tuple[str, ...]
    kind: Mapping[str, str]
    """Group, version and kind of what it is about."""
    action: str

    @property
    def collection(self) -> str:
        """The path of the collection that its object is in."""
        head, found, _ = self.path.partition("/{name}")
        return head if found else self.path

    @property
    def is_watch(self) -> bool:
        """Return whether its answer goes on until its time is over, by its path alone."""
        return self.action.startswith("watch")


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Yield what an OpenAPI v3 document describes."""
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
