"""The annotations of a Deployment and its ReplicaSets: revisions, and the Deployment's size at the last scaling.

Source: Kubernetes' `pkg/controller/deployment/util/deployment_util.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.golang.go_numbers import parse_int

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"

_NOT_COPIED: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        ROLLBACK_TO,
    )
)
_LONGEST_HISTORY: Final = 2000
"""The maximum number of characters in the annotation `REVISION_HISTORY` (`maxRevHistoryLengthInChars`)."""


def revision_of(obj: Object) -> int | None:
    """Return the revision in an object's annotation.

    The result is 0 if there is no annotation, and None if the annotation is not a number.
    """
    text = obj.annotations.get(REVISION)
    return 0 if text is None else _number(text)


def max_revision(replica_sets: Iterable[Object]) -> int:
    """Return the highest revision in the annotations of objects; invalid numbers are ignored."""
    return max((revision_of(each) or 0 for each in replica_sets), default=0)


def last_revision(replica_sets: Iterable[Object]) -> int:
    """Return the second highest revision, which precedes the current revision; 0 if there is none."""
    highest = sorted((revision_of(each) or 0 for each in replica_sets), reverse=True)
    return max(highest[1], 0) if len(highest) > 1 else 0


def rollback_to(deployment: Object) -> int | None:
    """Return the revision to which the Deployment must be rolled back.

    The result is 0 for a rollback to the previous revision, and None if no rollback is requested.
    """
    text = deployment.annotations.get(ROLLBACK_TO, "")
    return _number(text) if text else None


def replicas_annotation(obj: Object, name: str) -> int | None:
    """Return the number of replicas in an annotation of a ReplicaSet; None if the annotation is missing or invalid."""
    number = _number(obj.annotations.get(name, ""))
    return number if number is not None and 0 <= number < 2**31 else None


def sized(annotations: Mapping[str, str], desired: int, most: int) -> dict[str, str]:
    """Return the annotations of a ReplicaSet after a Deployment was scaled to `desired` pods.

    During a rollout, the Deployment has at most `most` pods.
    """
    return {**annotations, DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(most)}


def of_new_replica_set(deployment: Mapping[str, str], current: Mapping[str, str], revision: int) -> dict[str, str]:
    """Return the annotations of a Deployment's new ReplicaSet: those copied from the Deployment, and the revision.

    If the ReplicaSet had a lower revision before, then the Deployment was rolled back to the ReplicaSet. After a
    rollback, the annotation with the history of revisions also lists the lower revision. The length of this annotation
    is limited.
    """
    desired = {**current, **{key: value for key, value in deployment.items() if key not in _NOT_COPIED}}
    text = current.get(REVISION, "")
    old = _number(text) if text else 0
    if old is None or old >= revision:
        return desired
    desired[REVISION] = str(revision)
    if REVISION in current:
        desired[REVISION_HISTORY] = _history(current.get(REVISION_HISTORY, ""), text)
    return desired


def of_rolled_back(deployment: Mapping[str, str], replica_set: Mapping[str, str]) -> dict[str, str]:
    """Return a Deployment's annotations after a rollback: the ReplicaSet's annotations except the controller's own."""
    own = {key: value for key, value in deployment.items() if key in _NOT_COPIED and key != ROLLBACK_TO}
    return {**own, **{key: value for key, value in replica_set.items() if key not in _NOT_COPIED}}


def _history(history: str, old: str) -> str:
    if not history:
        return old
    revisions = history.split(",")
    while revisions and len(",".join((*revisions, old))) > _LONGEST_HISTORY:
        revisions = revisions[1:]
    return ",".join((*revisions, old))


def _number(text: str) -> int | None:
    try:
        return parse_int(text)
    except ValueError:
        return None
