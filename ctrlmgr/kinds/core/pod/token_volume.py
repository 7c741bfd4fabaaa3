"""The volume that nearly every pod has: the token of its account, which admission mounts in its containers.

Rules come from Kubernetes' `plugin/pkg/admission/serviceaccount/admission.go` (`TokenVolumeSource`).
"""

from __future__ import annotations

from typing import Any, Final


def token_source() -> dict[str, Any]:
    """Return what is projected into it."""
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            # The seconds by which TokenRequests know that a pod did not ask for a token itself.
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 0o644,
    }


TOKEN_SOURCE: Final = token_source()
"""The same, to compare with: it is valid, and need not be looked at again in every pod."""
