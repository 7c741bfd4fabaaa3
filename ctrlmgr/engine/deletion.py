"""Decides how an object is deleted: immediately, after its grace period, or after its last finalizer is removed.

Guarantees: the decision is a pure function, with the rules of apiserver's `registry/rest/delete.go` (`BeforeDelete`)
and `generic/registry/store.go` (`Store.Delete`). A repeated deletion of an object can only shorten the grace period.
After the first request, the options of further deletions no longer change finalizers.

One difference from Kubernetes is intended: in addition to the finalizers in metadata.finalizers, those that
`Strategy.finalizers` returns prevent the removal of an object. Therefore a Namespace is not removed before it is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.engine.api_errors import conflict
from ctrlmgr.engine.request_options import DeleteOptions
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.errors import Conflict

LARGEST = (1 << 63) - 1
"""The largest number that a Go client can decode."""

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

_FINALIZERS = {"Orphan": ORPHAN, "Foreground": FOREGROUND}
"""The finalizer of the garbage collector that each propagation policy sets."""


class GracePeriod(NamedTuple):
    """The grace period of a deleted object, and the time at which the grace period ends."""

    seconds: int
    until: str
    pending: bool = False
    """Whether the object already has this grace period, so that this request changes nothing."""


class DeletionDecision(NamedTuple):
    """The decision on a deletion."""

    grace: GracePeriod | None
    """The grace period; None if the object has no grace period, or if the period has ended."""
    finalizers: Sequence[str]
    held: bool
    """Whether finalizers prevent the removal of the object."""

    @property
    def is_pending(self) -> bool:
        """Return whether the deletion is already pending and this request changes nothing."""
        return self.grace is not None and self.grace.pending

    @property
    def is_removable(self) -> bool:
        """Return whether the object can be removed now."""
        return not self.held and (self.grace is None or not self.grace.seconds)

    def mark(self, metadata: dict[str, Any], now: str) -> None:
        """Set the metadata fields of an object that describe its deletion."""
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
        if metadata.get("deletionTimestamp", "~") > now:  # compared as text, in one form; "~" sorts after every time
            metadata["deletionTimestamp"] = now
        metadata["deletionGracePeriodSeconds"] = 0


def decide(obj: Object, options: DeleteOptions, strategy: Strategy, now: str) -> DeletionDecision:
    """Return the decision on the deletion of `obj`."""
    finalizers = _finalizers(obj.metadata.finalizers or (), options, strategy.default_propagation)
    return DeletionDecision(
        _grace(obj, options.grace_period_seconds, strategy, now),
        finalizers,
        bool(finalizers) or bool(strategy.finalizers(obj)),
    )


def check_preconditions(
    obj: Object, options: DeleteOptions, resource: Resource, kind: str, *, own_words: bool = False
) -> None:
    """Raise `Conflict` if the object lacks the uid or resourceVersion that the client's preconditions require."""
    if options.uid is not None and options.uid != obj.uid:
        raise _unmet(
            obj, resource, "" if own_words else kind, "UID", options.uid, obj.uid, "deleted and then recreated"
        )
    version = str(obj.revision)
    if options.resource_version is not None and options.resource_version != version:
        asked = options.resource_version
        raise _unmet(obj, resource, kind, "ResourceVersion", asked, version, "modified")


def _unmet(obj: Object, resource: Resource, kind: str, what: str, required: str, found: str, perhaps: str) -> Conflict:
    if not kind:  # this kind's REST storage checks preconditions itself, with its own message
        detail = f"Precondition failed: {what} in precondition: {required}, {what} in object meta: {found}"
        return conflict(resource, obj.name, detail)
    detail = (
        f"the {what} in the precondition ({required}) does not match the {what} in record ({found}). "
        f"The object might have been {perhaps}"
    )
    return conflict(
        Resource(resource.group, kind), obj.name, detail
    )  # Kubernetes passes the kind where a resource is expected


def _grace(obj: Object, asked: int | None, strategy: Strategy, now: str) -> GracePeriod | None:
    if asked is not None and asked < 0:
        asked = 1
    seconds = strategy.grace_period(obj, asked)
    if seconds is None:
        return None
    metadata = obj.metadata
    if metadata.deletion_timestamp is None:
        return GracePeriod(seconds, _later(now, seconds))
    return _shortened(metadata, metadata.deletion_timestamp, asked)


def _shortened(metadata: ObjectMeta, until: str, seconds: int | None) -> GracePeriod | None:
    given = metadata.deletion_grace_period_seconds
    if not given:
        return None
    if seconds is None or seconds >= given:
        return GracePeriod(given, until, pending=True)
    return GracePeriod(seconds, _later(until, seconds - given))


def _later(time: str, seconds: int) -> str:
    return format_time_seconds(parse_time(time) + _duration(seconds) // 1000)


def _duration(seconds: int) -> int:
    """Return the nanoseconds of Go's `time.Duration(seconds) * time.Second`, which overflows at 64 bits."""
    return (seconds * 1_000_000_000 + (1 << 63)) % (1 << 64) - (1 << 63)


def _finalizers(finalizers: Sequence[str], options: DeleteOptions, default: str) -> Sequence[str]:
    """Return the finalizers of an object, with the garbage collector's finalizers set as the deletion options require.

    Deletion options override existing finalizers, and existing finalizers override the kind's `default`.
    """
    policy = _policy(finalizers, options, default)
    kept = [each for each in finalizers if each not in (ORPHAN, FOREGROUND)]
    desired = [*kept, policy] if policy else kept
    return finalizers if set(desired) == set(finalizers) else desired


def _policy(finalizers: Sequence[str], options: DeleteOptions, default: str) -> str:
    """Return the finalizer for the handling of dependents; "" for background deletion."""
    if not default:
        return ""
    if options.orphan_dependents is not None:
        return ORPHAN if options.orphan_dependents else ""
    if options.propagation_policy is not None:
        return _FINALIZERS.get(options.propagation_policy, "")
    found = next((each for each in finalizers if each in (ORPHAN, FOREGROUND)), "")
    return found or _FINALIZERS.get(default, "")
