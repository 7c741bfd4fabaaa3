"""Applies JSON patches, merge patches and strategic merge patches; `managedfields` contains server-side apply.

Guarantees for all kinds of patches:
- **Arguments are not changed.** Results share structure with the object and with the patch, so a caller must copy a
  result before it changes the result in place.
- **Kubernetes' results.** A patch has the same result as in Kubernetes, including the peculiarities of Go libraries. A
  patch that Kubernetes refuses is refused with the same code, reason and message.

A patch is applied to the versioned object as decoded JSON. The patched object is not validated against the schema,
because the codec reads the object next, and prunes, types and orders it like any other body.
"""

from ctrlmgr.engine.patch.json_patch import check_json_patch, json_patch
from ctrlmgr.engine.patch.merge_patch import merge_patch
from ctrlmgr.engine.patch.strategic import strategic_merge_patch

__all__ = ["check_json_patch", "json_patch", "merge_patch", "strategic_merge_patch"]
