"""Decides whether tolerations of pods match taints of nodes.

Guarantees: a taint is tolerated exactly as in Kubernetes (`Toleration.ToleratesTaint` in
`component-helpers/scheduling/corev1`): the effect and the key of a toleration must equal those of the taint or be
empty. Unless the operator is Exists, the values must also be equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

_HARD: Final = (NO_SCHEDULE, NO_EXECUTE)


class Taint(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Taint that scheduling uses."""

    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """Return the taint's key and effect.

        A node has at most one taint with the same key and effect (`Taint.MatchTaint`).
        """
        return self.key, self.effect


class Toleration(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 Toleration that scheduling uses."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this toleration matches a taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether any of these tolerations matches a taint."""
    return any(each.tolerates(taint) for each in tolerations)


def first_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str] = _HARD
) -> Taint | None:
    """Return the first taint with one of these effects that no toleration matches; None if there is no such taint."""
    return next((each for each in taints if each.effect in effects and not is_tolerated(each, tolerations)), None)
