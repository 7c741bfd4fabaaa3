"""The `kubectl get` columns of workload kinds (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.rows import replicas, status_count
from ctrlmgr.engine.tables.table_printer import NONE, Fields, age, containers, labels_text, printer, selector_text


def _template(fields: Fields) -> tuple[str, str]:
    return containers(at(fields, "spec", "template", "spec"))


def _deployment(fields: Fields, ages: Ages) -> list[Any]:
    return [
        f"{status_count(fields, 'readyReplicas')}/{replicas(fields)}",
        status_count(fields, "updatedReplicas"),
        status_count(fields, "availableReplicas"),
        age(fields, ages),
        *_template(fields),
        selector_text(at(fields, "spec", "selector")),
    ]


def _replica_set(fields: Fields, ages: Ages) -> list[Any]:
    selector = at(fields, "spec", "selector")
    return [*_replica_counts(fields, ages), *_template(fields), selector_text(selector)]


def _replication_controller(fields: Fields, ages: Ages) -> list[Any]:
    return [*_replica_counts(fields, ages), *_template(fields), labels_text(at(fields, "spec", "selector"))]


def _replica_counts(fields: Fields, ages: Ages) -> list[Any]:
    return [
        replicas(fields),
        status_count(fields, "replicas"),
        status_count(fields, "readyReplicas"),
        age(fields, ages),
    ]


def _stateful_set(fields: Fields, ages: Ages) -> list[Any]:
    return [f"{status_count(fields, 'readyReplicas')}/{replicas(fields)}", age(fields, ages), *_template(fields)]


def _daemon_set(fields: Fields, ages: Ages) -> list[Any]:
    return [
        status_count(fields, "desiredNumberScheduled"),
        status_count(fields, "currentNumberScheduled"),
        status_count(fields, "numberReady"),
        status_count(fields, "updatedNumberScheduled"),
        status_count(fields, "numberAvailable"),
        labels_text(at(fields, "spec", "template", "spec", "nodeSelector")),
        age(fields, ages),
        *_template(fields),
        selector_text(at(fields, "spec", "selector")),
    ]


def _revision(fields: Fields, ages: Ages) -> list[Any]:
    owners = at(fields, "metadata", "ownerReferences") or []
    controller = next((each for each in owners if each.get("controller")), None)
    name = NONE
    if controller:
        group, slash, _ = controller.get("apiVersion", "").partition("/")
        kind = controller.get("kind", "").lower()
        name = f"{kind}.{group if slash else ''}/{controller.get('name', '')}".replace("./", "/")
    return [name, fields.get("revision", 0), age(fields, ages)]


_REPLICAS = "Desired:integer|Current:integer|Ready:integer|Age|+Containers|+Images|+Selector"


DEPLOYMENT = printer("Ready|Up-to-date|Available|Age|+Containers|+Images|+Selector", _deployment)
REPLICA_SET = printer(_REPLICAS, _replica_set)
REPLICATION_CONTROLLER = printer(_REPLICAS, _replication_controller)
STATEFUL_SET = printer("Ready|Age|+Containers|+Images", _stateful_set)
DAEMON_SET = printer(
    "Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age"
    "|+Containers|+Images|+Selector",
    _daemon_set,
)
CONTROLLER_REVISION = printer("Controller|Revision|Age", _revision)
