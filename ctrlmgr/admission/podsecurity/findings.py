"""What a check finds, and the words it says it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Fields: TypeAlias = Mapping[str, Any]


class Pod(NamedTuple):
    """The part of a pod, or of a pod template, that checks look at."""

    annotations: Mapping[str, str]
    spec: Fields

    @property
    def containers(self) -> Iterator[Fields]:
        """All containers: init containers, containers, ephemeral containers."""
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(field) or ()

    @property
    def security(self) -> Fields:
        """The pod's own security context."""
        return security_of(self.spec)

    @property
    def is_windows(self) -> bool:
        """Whether the pod says that it runs on Windows."""
        return bool((self.spec.get("os") or {}).get("name") == "windows")

    @property
    def has_user_namespace(self) -> bool:
        """Whether the pod's users are not the host's, which relaxes some checks."""
        return self.spec.get("hostUsers") is False


class Finding(NamedTuple):
    """Why a pod is not let in."""

    reason: str
    detail: str


Check: TypeAlias = Callable[[Pod], Finding | None]
"""Returns what is wrong with a pod by one rule, None if nothing is."""


def security_of(part: Fields) -> Fields:
    """Return the security context of a pod's spec or a container."""
    found: Fields = part.get("securityContext") or {}
    return found


def quoted(items: Iterable[str]) -> str:
    """Return items in quotation marks, separated by commas."""
    return ", ".join(f'"{item}"' for item in items)


def plural(count: int, one: str, many: str) -> str:
    """Return the form for a count."""
    return one if count == 1 else many


def containers(names: Sequence[str]) -> str:
    """Return `container "a"` or `containers "a", "b"`."""
    return f"{plural(len(names), 'container', 'containers')} {quoted(names)}"


def setters(pod: bool, names: Sequence[str]) -> list[str]:
    """Return who set something: the pod, containers, both."""
    return [*(["pod"] if pod else []), *([containers(names)] if names else [])]
