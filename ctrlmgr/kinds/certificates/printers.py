"""The `kubectl get` columns of certificates.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages, human_duration
from ctrlmgr.engine.tables.table_printer import NONE, Fields, age, labels_text, printer


def _request(fields: Fields, ages: Ages) -> list[Any]:
    met = [each.get("type") for each in at(fields, "status", "conditions") or ()]
    words = [word for word in ("Approved", "Denied", "Failed") if word in met]
    if at(fields, "status", "certificate"):
        words.append("Issued")
    seconds = at(fields, "spec", "expirationSeconds")
    return [
        age(fields, ages),
        at(fields, "spec", "signerName") or NONE,
        at(fields, "spec", "username") or "",
        NONE if seconds is None else human_duration(timedelta(seconds=seconds)),
        ",".join(words) or "Pending",
    ]


def _pod_request(fields: Fields, ages: Ages) -> list[Any]:
    spec, met = fields.get("spec") or {}, [each.get("type") for each in at(fields, "status", "conditions") or ()]
    states = [each for each in met if each in ("Issued", "Denied", "Failed")]
    names = [spec.get(each) or "" for each in ("podName", "serviceAccountName", "nodeName", "signerName")]
    return [*names, states[-1] if states else "Pending", labels_text(spec.get("unverifiedUserAnnotations"))]


CERTIFICATE_SIGNING_REQUEST = printer("Age|SignerName|Requestor|RequestedDuration|Condition", _request)
CLUSTER_TRUST_BUNDLE = printer("SignerName", lambda fields, ages: [at(fields, "spec", "signerName") or NONE])
POD_CERTIFICATE_REQUEST = printer(
    "PodName|ServiceAccountName|NodeName|SignerName|State|UnverifiedUserAnnotations", _pod_request
)
