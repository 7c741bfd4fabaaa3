"""The `kubectl get` columns of certificates.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages, human_duration
from ctrlmgr.engine.tables.table_printer import NONE, Fields, age, printer


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


CERTIFICATE_SIGNING_REQUEST = printer("Age|SignerName|Requestor|RequestedDuration|Condition", _request)
CLUSTER_TRUST_BUNDLE = printer("SignerName", lambda fields, ages: [at(fields, "spec", "signerName") or NONE])
