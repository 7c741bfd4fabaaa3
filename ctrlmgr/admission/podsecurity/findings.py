"""The findings of the checks, and functions that format the findings as messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Fields: TypeAlias = Mapping[str, Any]


class Pod(NamedTuple):
    """The fields of a pod or a pod template that the checks read."""

    annotations: Mapping[str, str]
    spec: Fields

    @property
    def containers(self) -> Iterator[Fields]:
        """All containers of the pod, in this order: init containers, containers, ephemeral containers."""
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(field) or ()

    @property
    def security(self) -> Fields:
        """The security context of the pod itself."""
        return security_of(self.spec)

    @property
    def is_windows(self) -> bool:
        """Return whether the pod declares that it runs on Windows."""
        return bool((self.spec.get("os") or {}).get("name") == "windows")

    @property
    def has_user_namespace(self) -> bool:
        """Return whether the pod has its own user namespace, in which some checks do not apply."""
        return self.spec.get("hostUsers") is False


class Finding(NamedTuple):
    """The reason why a pod is refused."""

    reason: str
    detail: str


Check: TypeAlias = Callable[[Pod], Finding | None]
"""A function that returns the violation of one rule by a pod, or None."""


def security_of(part: Fields) -> Fields:
    """Return the security context of a pod's spec or of a container."""
    found: Fields = part.get("securityContext") or {}
    return found


def quoted(items: Iterable[str]) -> str:
    """Return the items in quotation marks, separated by commas."""
    return ", ".join(f'"{item}"' for item in items)


def plural(count: int, one: str, many: str) -> str:
    """Return the singular if the count is one, otherwise the plural."""
    return one if count == 1 else many


def containers(names: Sequence[str]) -> str:
    """Return the string `container "a"`, or `containers "a", "b"` for several names."""
    return f"{plural(len(names), 'container', 'containers')} {quoted(names)}"


def setters(pod: bool, names: Sequence[str]) -> list[str]:
    """Return phrases that name the parts of a pod that set a field: the pod, containers, or both."""
    return [*(["pod"] if pod else []), *([containers(names)] if names else [])]
