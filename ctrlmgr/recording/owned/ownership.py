"""Defines the interface of owned kinds in a replay, and the comparison of owned kinds at checkpoints.

A kind is *owned* in a replay if one of ctrlmgr's controllers writes its objects. The writes of the same controller in
the recorded cluster are expected: they are not appended to the replay's log. Instead, every checkpoint compares their
result with the result of ctrlmgr's controller. Writes of other clients to owned kinds are inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.recording.format import Change, Checkpoint
from ctrlmgr.recording.object_comparison import Divergence, Verdict, differences
from ctrlmgr.recording.report import UncomparedCounts
from ctrlmgr.recording.write_pairing import WriteTracker


class KindOwnership(Protocol):
    """One owned kind in a replay; only the replay's thread may use it."""

    resource: Resource
    is_shared: bool
    """Whether both clients and several controllers write objects of this kind.

    If True, the replay calls the other owned kinds first, and does not notify this kind of changes of other kinds.
    """

    expects_others: bool
    """Whether changes of other kinds may be writes of the kind's controllers, so that `expects` must be called."""

    def observe(self, change: Change) -> None:
        """Process a change of any kind before it is appended, so that our controllers can act before the change."""

    def expects(self, change: Change) -> bool:
        """Return whether a change of a kind that is not owned is an expected write, and therefore not an input."""

    def take(self, change: Change) -> bool:
        """Process a change of this kind; return False for an input, which the caller must append."""

    def take_past(self, change: Change) -> bool:
        """Record a change of the past (`initial_entries`); return False for an input, which the caller must append.

        A change of the past is never expected, even if a controller made it, because the recording lacks the inputs of
        the write.
        """

    def prepare(self) -> None:
        """Prepare for a checkpoint; the controllers finish their work for the checkpoint after this call."""

    @property
    def subjects(self) -> Collection[Key]:
        """All subjects to compare, which are objects or groups of objects."""

    @property
    def changed(self) -> Iterable[Key]:
        """The subjects that have changed, in the recording or in the replay's log, since the last checkpoint."""

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return the recorded state and our state of a subject as JSON values, None for a missing state."""

    def passed(self, revision: Revision) -> None:
        """Record that the recorded controllers had finished at `revision`, and that all subjects were compared."""

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """From now on, report each recorded write and each write of ctrlmgr's controllers to `tracker`.

        Return the controllers that can act at any time.
        """

    def act_on(self, subject: Key) -> None:
        """Let these controllers act on a subject, if it is triggered."""

    def unjudged(self) -> Iterable[UncomparedCounts]:
        """Return the number of comparisons that were not possible so far, by subject."""


def divergence_at(checkpoint: Checkpoint, owned: KindOwnership, subject: Key) -> Divergence | None:
    """Compare one subject; return None if the recorded state and our state are equal."""
    recorded, ours = owned.compare(subject)
    found = tuple(differences(recorded, ours))
    if not found:
        return None
    verdict = Verdict.DIFFERS if recorded and ours else Verdict.MISSING if recorded else Verdict.UNEXPECTED
    found = found if verdict is Verdict.DIFFERS else ()
    resource, (namespace, name) = str(owned.resource), subject
    return Divergence(checkpoint.name, checkpoint.line, verdict, resource, namespace, name, found)
