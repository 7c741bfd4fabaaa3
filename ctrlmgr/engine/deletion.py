"""How an object goes: at once, after its grace period, or when its last finalizer is gone.

Guarantees: the rules of apiserver's `registry/rest/delete.go` (`BeforeDelete`) and `generic/registry/store.go`
(`Store.Delete`), as one pure decision on what is stored. A repeated deletion can only shorten the grace period; once
deletion is pending, options change finalizers no more.

One difference is meant: what `Strategy.finalizers` returns holds an object as metadata.finalizers does, which is how
Namespaces stay until they are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.engine.options import DeleteOptions
from ctrlmgr.engine.refusals import conflict
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.errors import Conflict

LARGEST = (1 << 63) - 1
"""The largest number that a client in Go can read."""

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

_FINALIZERS = {"Orphan": ORPHAN, "Foreground": FOREGROUND}
"""The finalizers of the garbage collector, by the propagation policy that asks for them."""


class Grace(NamedTuple):
    """How long an object is left in place, and until when."""

    seconds: int
    until: str
    pending: bool = False
    """Whether that is so already, and this deletion changes nothing."""


class Going(NamedTuple):
    """What a deletion comes to."""

    grace: Grace | None
    """None: it has none, or it is over."""
    finalizers: Sequence[str]
    held: bool
    """Whether finalizers keep the object in place."""

    @property
    def is_pending(self) -> bool:
        """Whether the object is on its way already, and this deletion is to leave it alone."""
        return self.grace is not None and self.grace.pending

    @property
    def goes_now(self) -> bool:
        """Whether nothing keeps the object any more."""
        return not self.held and (self.grace is None or not self.grace.seconds)

    def mark(self, metadata: dict[str, Any], now: str) -> None:
        """Say in an object's metadata that it is going."""
        if "deletionTimestamp" not in metadata and metadata.get("generation", 0) > 0:
            metadata["generation"] = min(metadata["generation"] + 1, LARGEST)
        if self.finalizers:
            metadata["finalizers"] = list(self.finalizers)
        else:
            metadata.pop("finalizers", None)
        if self.grace is not None:
            metadata["deletionTimestamp"] = self.grace.until
            metadata["deletionGracePeriodSeconds"] = self.grace.seconds
            return
        if metadata.get("deletionTimestamp", "~") > now:  # as text: both are in the same form, and "~" is after both
            metadata["deletionTimestamp"] = now
        metadata["deletionGracePeriodSeconds"] = 0


def decide(obj: Object, options: DeleteOptions, strategy: Strategy, now: str) -> Going:
    """Return how `obj` goes."""
    finalizers = _finalizers(obj.metadata.finalizers or (), options, strategy.default_propagation)
    return Going(
        _grace(obj, options.grace_period_seconds, strategy, now),
        finalizers,
        bool(finalizers) or bool(strategy.finalizers(obj)),
    )


def check_preconditions(
    obj: Object, options: DeleteOptions, resource: Resource, kind: str, *, own_words: bool = False
) -> None:
    """Raise `Conflict` if the object is not the one, or not as, the client meant."""
    if options.uid is not None and options.uid != obj.uid:
        raise _unmet(
            obj, resource, "" if own_words else kind, "UID", options.uid, obj.uid, "deleted and then recreated"
        )
    version = str(obj.revision)
    if options.resource_version is not None and options.resource_version != version:
        asked = options.resource_version
        raise _unmet(obj, resource, kind, "ResourceVersion", asked, version, "modified")


def _unmet(obj: Object, resource: Resource, kind: str, what: str, asked: str, found: str, perhaps: str) -> Conflict:
    if not kind:  # its REST storage checks by itself, in its own words
        detail = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
        return conflict(resource, obj.name, detail)
    detail = (
        f"the {what} in the precondition ({asked}) does not match the {what} in record ({found}). "
        f"The object might have been {perhaps}"
    )
    return conflict(
        Resource(resource.group, kind), obj.name, detail
    )  # a kind where a resource is meant, as it is there


def _grace(obj: Object, asked: int | None, strategy: Strategy, now: str) -> Grace | None:
    if asked is not None and asked < 0:
        asked = 1
    seconds = strategy.grace_period(obj, asked)
    if seconds is None:
        return None
    metadata = obj.metadata
    if metadata.deletion_timestamp is None:
        return Grace(seconds, _later(now, seconds))
    return _shortened(metadata, metadata.deletion_timestamp, asked)


def _shortened(metadata: ObjectMeta, until: str, asked: int | None) -> Grace | None:
    given = metadata.deletion_grace_period_seconds
    if not given:
        return None
    if asked is None or asked >= given:
        return Grace(given, until, pending=True)
    return Grace(asked, _later(until, asked - given))


def _later(time: str, seconds: int) -> str:
    return format_time_seconds(parse_time(time) + _duration(seconds) // 1000)


def _duration(seconds: int) -> int:
    """Return nanoseconds as Go's `time.Duration(seconds) * time.Second` has them: what is beyond 64 bits wraps."""
    return (seconds * 1_000_000_000 + (1 << 63)) % (1 << 64) - (1 << 63)


def _finalizers(finalizers: Sequence[str], options: DeleteOptions, default: str) -> Sequence[str]:
    """Return the finalizers with those of the garbage collector as the options want them.

    Options come before what is there already, and that before what is `default` for the kind.
    """
    policy = _policy(finalizers, options, default)
    kept = [each for each in finalizers if each not in (ORPHAN, FOREGROUND)]
    wanted = [*kept, policy] if policy else kept
    return finalizers if set(wanted) == set(finalizers) else wanted


def _policy(finalizers: Sequence[str], options: DeleteOptions, default: str) -> str:
    """Return the finalizer that says what becomes of the dependents, "" if they go in the background."""
    if not default:
        return ""
    if options.orphan_dependents is not None:
        return ORPHAN if options.orphan_dependents else ""
    if options.propagation_policy is not None:
        return _FINALIZERS.get(options.propagation_policy, "")
    found = next((each for each in finalizers if each in (ORPHAN, FOREGROUND)), "")
    return found or _FINALIZERS.get(default, "")
