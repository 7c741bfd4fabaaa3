"""The `kubectl get` columns of flowcontrol.apiserver.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import NONE, Fields, age, printer


def _priority_level(fields: Fields, ages: Ages) -> list[Any]:
    limited = at(fields, "spec", "limited") or {}
    queuing = at(limited, "limitResponse", "queuing") or {}
    sizes = [queuing.get(name, NONE) for name in ("queues", "handSize", "queueLengthLimit")]
    return [
        at(fields, "spec", "type") or "",
        limited.get("nominalConcurrencyShares", NONE),
        *sizes,
        age(fields, ages),
    ]


def _flow_schema(fields: Fields, ages: Ages) -> list[Any]:
    dangling = [each for each in at(fields, "status", "conditions") or () if each.get("type") == "Dangling"]
    return [
        at(fields, "spec", "priorityLevelConfiguration", "name") or NONE,
        at(fields, "spec", "matchingPrecedence") or 0,
        at(fields, "spec", "distinguisherMethod", "type") or NONE,
        age(fields, ages),
        dangling[0].get("status", "?") if dangling else "?",
    ]


FLOW_SCHEMA = printer("PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL", _flow_schema)
PRIORITY_LEVEL_CONFIGURATION = printer(
    "Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age", _priority_level
)
