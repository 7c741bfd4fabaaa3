"""The compaction controller: compacts the history of resources that have a retention rule.

Guarantees:
- An event is removed only if three conditions hold: the rule (`keep`, `keep_for`) of its resource allows the removal,
  the event has the minimum age, and it is not among the minimum number of revisions that every log keeps. The current
  state of an object is never removed.
- If no rule exists for Secrets, their old states are removed by their age alone, even if the log is short.
- The controller is level-based, like every reconciler. The key of a reconcile is a resource, and the result depends
  only on the rule and the clock. Therefore a missed or repeated run does no harm.
"""

from __future__ import annotations

from typing import NamedTuple

import structlog

from ctrlmgr.api.resource import SECRETS, Key, Resource, Revision
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import EventLog
from ctrlmgr.settings import CompactionSettings, Retention

log = structlog.get_logger(__name__)

_SECRETS = Key("", str(SECRETS))


class Compacted(NamedTuple):
    """The result of a compaction: the number of removed events, all superseded at or before revision `before`."""

    before: Revision
    removed: int


def newest_to_compact(event_log: EventLog, rule: Retention, settings: CompactionSettings, *, now: int) -> Revision:
    """Return the revision up to which superseded events may be removed.

    If no event may be removed, the returned revision is 0 or less. `now` is in microseconds since 1970.
    """
    age = max(settings.min_age, rule.keep_for)
    old_enough = event_log.revision_at(now - int(age * 1_000_000))
    return min(event_log.head().revision - settings.min_revisions, old_enough)


def compact_by_rule(
    event_log: EventLog, resource: Resource, rule: Retention, settings: CompactionSettings, *, now: int
) -> Compacted:
    """Compact one resource by the rule of the resource; raises the errors of `EventLog.compact`."""
    before = newest_to_compact(event_log, rule, settings, now=now)
    if before <= 0:
        return Compacted(0, 0)
    return Compacted(before, event_log.compact(before, resource=resource, keep=rule.keep))


def forget_secrets(event_log: EventLog, settings: CompactionSettings, *, now: int) -> Compacted:
    """Remove old states of Secrets; raises the errors of `EventLog.compact`.

    If there is no state to remove, the oldest readable revision stays the same, so that reads of old revisions do not
    raise `Expired`.
    """
    before = newest_secret_to_forget(event_log, settings, now=now)
    if not before:
        return Compacted(0, 0)
    return Compacted(before, event_log.compact(before, resource=SECRETS))


def newest_secret_to_forget(event_log: EventLog, settings: CompactionSettings, *, now: int) -> Revision:
    """Return the revision up to which old states of Secrets may be removed; 0 if no state may be removed."""
    age = max(settings.min_age, settings.secrets_for)
    return _newest_change(event_log, event_log.revision_at(now - int(age * 1_000_000)))


def _newest_change(event_log: EventLog, until: Revision) -> Revision:
    """Return the newest revision, at most `until`, that replaced an older state of a Secret; 0 if there is none."""
    newest, after = 0, event_log.floor(SECRETS)
    while after < until and (events := event_log.events_after(after, resource=SECRETS)):
        newest = max((each.revision for each in events if each.previous and each.revision <= until), default=newest)
        after = events[-1].revision
    return newest


class CompactionReconciler:
    """A reconciler that compacts the resource that the key names; a timer enqueues these keys."""

    def __init__(self, event_log: EventLog, settings: CompactionSettings, *, clock: Clock) -> None:
        """Create a reconciler that uses the rules in `settings`, one for each resource."""
        self._log = event_log
        self._settings = settings
        self._clock = clock
        self._rules = {Key("", resource): rule for resource, rule in settings.resources.items()}
        self._forgets_secrets = settings.secrets_for > 0 and _SECRETS not in self._rules

    def due(self) -> list[Key]:
        """Return the keys to enqueue periodically: the resources that have a rule, and in addition Secrets."""
        return [*self._rules, _SECRETS] if self._forgets_secrets else list(self._rules)

    def reconcile(self, key: Key, client: Client) -> None:
        """Compact one resource, if the resource still has a rule."""
        rule, now = self._rules.get(key), self._clock.now()
        if rule is not None:
            done = compact_by_rule(self._log, Resource.parse(key.name), rule, self._settings, now=now)
        elif self._forgets_secrets and key == _SECRETS:
            done = forget_secrets(self._log, self._settings, now=now)
        else:
            return
        if done.removed:
            log.info("compacted", resource=key.name, before=done.before, removed=done.removed)
