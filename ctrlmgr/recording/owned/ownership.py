"""Defines the protocol of owned kinds in a replay, and the comparison of owned kinds at checkpoints.

A kind that one of our controllers writes is *owned*. The writes of the same controller in the real cluster are
expected: these are not appended to our log, and every checkpoint compares their result with that of our controllers.
Writes of other clients are inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.recording.divergence import Divergence, Verdict, differences
from ctrlmgr.recording.format import Change, Checkpoint
from ctrlmgr.recording.report import UncomparedCounts
from ctrlmgr.recording.write_comparison import WriteTracker


class KindOwnership(Protocol):
    """One owned kind; only the replay's thread may use it."""

    resource: Resource
    is_shared: bool
    """Whether clients and several controllers write objects of this kind.

    If so, the kind is processed after other owned kinds, and is not notified of changes of other kinds.
    """

    expects_others: bool
    """Whether changes of other kinds may be writes of the controllers, so that `expects` must be called."""

    def observe(self, change: Change) -> None:
        """Process a change of any kind before it is appended, because our controllers may have to act first."""

    def expects(self, change: Change) -> bool:
        """Return whether a change of a kind that is not owned is expected from our controllers, and is not an input."""

    def take(self, change: Change) -> bool:
        """Process a change of this kind; return False for an input that the caller appends."""

    def take_past(self, change: Change) -> bool:
        """Record a change of the past (`initial_entries`); return False for an input that the caller appends.

        Such a change is never expected, even if a controller made it, because the recording lacks the inputs of the
        write.
        """

    def prepare(self) -> None:
        """Prepare for a checkpoint, before our controllers finish their work."""

    @property
    def subjects(self) -> Collection[Key]:
        """All subjects (objects or groups of objects) to compare."""

    @property
    def changed(self) -> Iterable[Key]:
        """The subjects that have changed on either side since the last checkpoint."""

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return the recorded state and our state of a subject as JSON values, None for a missing state."""

    def passed(self, revision: Revision) -> None:
        """Record that the recorded controllers were quiescent at `revision`, and that all subjects were compared."""

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """Report each write of both sides to `tracker` from now on; return the controllers that can act at any time."""

    def act_on(self, subject: Key) -> None:
        """Let these controllers act on a subject, if it is triggered."""

    def unjudged(self) -> Iterable[UncomparedCounts]:
        """Return the numbers of comparisons that were not possible so far."""


def divergence_at(checkpoint: Checkpoint, owned: KindOwnership, subject: Key) -> Divergence | None:
    """Compare one subject; return None if both sides are equal."""
    recorded, ours = owned.compare(subject)
    found = tuple(differences(recorded, ours))
    if not found:
        return None
    verdict = Verdict.DIFFERS if recorded and ours else Verdict.MISSING if recorded else Verdict.UNEXPECTED
    found = found if verdict is Verdict.DIFFERS else ()
    resource, (namespace, name) = str(owned.resource), subject
    return Divergence(checkpoint.name, checkpoint.line, verdict, resource, namespace, name, found)
