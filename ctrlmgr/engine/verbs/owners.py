"""Owner references stand once each (apiserver `endpoints/handlers/create.go`, `dedupOwnerReferences`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import repeated

_WARNING = (
    "metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_AFTER_ADMISSION = _WARNING.replace("entries;", "entries after mutating admission happens;", 1)


def deduplicate_owners(metadata: dict[str, Any], warnings: list[str], *, after_admission: bool = False) -> None:
    """Drop owner references that stand in `metadata` before, and warn of them, and of who brought them in."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    if dropped := repeated(owners):
        metadata["ownerReferences"] = [owner for index, owner in enumerate(owners) if index not in dropped]
        uids = ", ".join(owners[index].get("uid", "") for index in sorted(dropped))
        start = _AFTER_ADMISSION if after_admission else _WARNING
        warnings.append(start + uids)
