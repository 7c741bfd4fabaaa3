"""What a replay expects of a kind that our controllers write: the contract, and comparing it at checkpoints.

A kind that one of our controllers writes is *owned*. What the same controller of the real cluster wrote to it is the
expectation: it is never fed to our log, and every checkpoint compares it with what ours wrote. What any other client
wrote to it is an input like any pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.recording.divergence import Divergence, Verdict, differences
from ctrlmgr.recording.every_write import WriteTracker
from ctrlmgr.recording.format import Change, Checkpoint
from ctrlmgr.recording.report import Unjudged


class Owned(Protocol):
    """One owned kind; for the thread of the replay."""

    resource: Resource
    is_shared: bool
    """Whether clients and several controllers write it: what others expect of it goes before, and it is told of no
    change of another kind."""

    expects_others: bool
    """Whether changes of other kinds may be our controllers' to make, so that `expects` is to be asked."""

    def observe(self, change: Change) -> None:
        """Take note of any change before it is appended or taken; our controllers may have to act first."""

    def expects(self, change: Change) -> bool:
        """Whether a change of a kind without an owner is our controllers' to make, so that it is no input."""

    def take(self, change: Change) -> bool:
        """Sort a change of this kind and do what it asks for; False if it is an input."""

    def take_past(self, change: Change) -> bool:
        """Note a change of this kind that belongs to the past (`opening`); False if it is an input as it is.

        It is no expectation, whichever client made it: the recording lacks the inputs of that write.
        """

    def prepare(self) -> None:
        """Get ready for a checkpoint, before our controllers do what they have left to do."""

    @property
    def subjects(self) -> Collection[Key]:
        """Everything there is to compare."""

    @property
    def changed(self) -> Iterable[Key]:
        """What of it has changed on either side since the last checkpoint."""

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return what is recorded and what is ours, as JSON values; None where there is nothing."""

    def passed(self, revision: Revision) -> None:
        """Note that the recorded controllers had nothing left to do at `revision`, and that all has been compared."""

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """Tell of each write of both sides from now on; return the controllers that can act at any moment."""

    def act_on(self, subject: Key) -> None:
        """Let those controllers act on what they have a reason to look at."""

    def unjudged(self) -> Iterable[Unjudged]:
        """Return what of it could not be compared so far."""


def divergence_at(checkpoint: Checkpoint, owned: Owned, subject: Key) -> Divergence | None:
    """Compare one subject; None if it is as recorded."""
    recorded, ours = owned.compare(subject)
    found = tuple(differences(recorded, ours))
    if not found:
        return None
    verdict = Verdict.DIFFERS if recorded and ours else Verdict.MISSING if recorded else Verdict.UNEXPECTED
    found = found if verdict is Verdict.DIFFERS else ()
    resource, (namespace, name) = str(owned.resource), subject
    return Divergence(checkpoint.name, checkpoint.line, verdict, resource, namespace, name, found)
