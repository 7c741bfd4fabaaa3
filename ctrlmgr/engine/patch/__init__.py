"""Patches: what the four kinds of PATCH bodies but one make of an object (server-side apply is `managedfields`).

Guarantees, for all of them:
- **Nothing given is changed.** Results share structure with the object and with the patch; who goes on to change a
  result in place does so to a copy.
- **Kubernetes' answers.** A patch does here what it does there, peculiarities of Go's libraries included, and what is
  refused there is refused here, with the same code, reason and message.

A patch works on the versioned object as decoded JSON. What comes out has not been checked against the schema: the
codec reads it next, and prunes, types and orders it like any other body.
"""

from ctrlmgr.engine.patch.json_patch import check_json_patch, json_patch
from ctrlmgr.engine.patch.merge_patch import merge_patch
from ctrlmgr.engine.patch.strategic import strategic_merge_patch

__all__ = ["check_json_patch", "json_patch", "merge_patch", "strategic_merge_patch"]
