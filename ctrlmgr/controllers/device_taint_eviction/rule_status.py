"""Computes the condition EvictionInProgress of DeviceTaintRules (`maybeUpdateRuleStatus` of `devicetainteviction`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.scheduling.structured.tainting_rules import DeviceTaintRule
from ctrlmgr.scheduling.taints import NO_EXECUTE

PERIOD: Final = 10.0
"""The shortest time between writes of a rule's status, in seconds."""
CONDITION: Final = "EvictionInProgress"
_SECOND: Final = 1_000_000
_NOT_UPDATED: Final = (
    "if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger "
    "an update."
)

Condition = dict[str, Any]


class Selected(NamedTuple):
    """The pods that a rule evicts, or would evict, and the numbers of devices that the rule selects."""

    pods: Sequence[Object] = ()
    published: int = 0
    """The number of selected devices in ResourceSlices."""
    allocated: int = 0
    """The number of selected devices in allocated ResourceClaims."""

    @property
    def namespaces(self) -> int:
        """The number of namespaces of the pods."""
        return len({each.namespace for each in self.pods})


class EvictedPods:
    """Counts the pods that were evicted because of each rule since the controller started; workers share it."""

    def __init__(self) -> None:
        """Create a counter without pods."""
        self._lock = Lock()
        self._counts: dict[str, int] = {}

    def count(self, rules: Iterable[str]) -> None:
        """Count a pod that was evicted because of the rules with these uids."""
        with self._lock:
            for each in rules:
                self._counts[each] = self._counts.get(each, 0) + 1

    def of(self, rule: str) -> int:
        """Return the number of pods for the rule with this uid."""
        return self._counts.get(rule, 0)

    def clear(self) -> None:
        """Remove all counted pods."""
        with self._lock:
            self._counts.clear()


def time_left(rule: Object, now: int) -> float:
    """Return the seconds until the status of a rule may be written; 0 if it may be written now."""
    current = _current(rule)
    if not current.get("lastTransitionTime") or current.get("observedGeneration") != _generation(rule):
        return 0
    return max(0.0, PERIOD - (now - parse_time(current["lastTransitionTime"])) / _SECOND)


def condition_of_rule(rule: DeviceTaintRule, selected: Selected, evicted: int) -> Condition:
    """Return the condition of a rule, without its transition time; `evicted` is the number of evicted pods."""
    reason, message = _state(rule.effect, selected, evicted)
    if evicted:
        message = f"{message} " if message else ""
        message += f"{_counted(evicted, 'pod')} evicted since starting the controller."
    is_evicting = reason == "PodsPendingEviction"
    return {
        "type": CONDITION,
        "status": "True" if is_evicting else "False",
        "observedGeneration": _generation(rule.object),
        "reason": reason,
        "message": message,
    }


def with_condition(rule: Object, condition: Condition, now: int) -> Object | None:
    """Return the configuration that applies a condition to a rule; None if the rule has this condition."""
    current = _current(rule)
    if {**current, "lastTransitionTime": ""} == {**condition, "lastTransitionTime": ""}:
        return None
    fields = rule.to_dict()
    stamped = {**condition, "lastTransitionTime": format_time_seconds(now)}
    return Object.from_dict(
        {
            "apiVersion": fields["apiVersion"],
            "kind": fields["kind"],
            "metadata": {"name": rule.name, "uid": rule.uid},
            "status": {"conditions": [stamped]},
        }
    )


def _state(effect: str, selected: Selected, evicted: int) -> tuple[str, str]:
    pods, places = len(selected.pods), _places(selected.namespaces)
    if effect == NO_EXECUTE:
        if pods:
            need = "1 pod needs" if pods == 1 else f"{pods} pods need"
            return "PodsPendingEviction", f"{need} to be evicted in {places}."
        return ("Completed" if evicted else "NotStarted"), ""
    if effect == "None":
        devices = f"{_counted(selected.published, 'published device')} selected. "
        devices += f"{_counted(selected.allocated, 'allocated device')} selected. "
        return "NoEffect", f"{devices}{_counted(pods, 'pod')} would be evicted in {places} {_NOT_UPDATED}"
    return "OtherEffect", "Eviction only happens for the NoExecute effect."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _places(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"


def _current(rule: Object) -> Mapping[str, Any]:
    conditions = (rule.to_dict().get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == CONDITION), {})


def _generation(rule: Object) -> int:
    return int(rule.to_dict()["metadata"].get("generation") or 0)
