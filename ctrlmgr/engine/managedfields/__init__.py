"""Field management and server-side apply: which manager set which field (apimachinery `util/managedfields`).

Guarantees:
- The value of metadata.managedFields is the one that Kubernetes would have written, including the order of keys.
- Arguments are never changed, and results share structure with the arguments. A caller that changes a result in place
  must copy it first. Only the object and its metadata are new dicts.
- Fields that the server sets have no owner, because `update` gets the request's object, before strategies and
  allocation.
- A write that changes no field leaves the stored managedFields unchanged.

How the engine calls a kind's `FieldManager`, in the order of apiserver's handlers and registry store:

    create   codec.decode → default → update(None, new) → admission → prepare_for_create → …
    update   codec.decode → default → update(live, new) → admission → prepare_for_update → keep_timestamps(live, new)
    patch    live in the served version → patch → codec.read → default → update(live, patched) → as an update
    apply    body, decoded as JSON or YAML but not read by the codec → apply(live, body) → codec.read → default → as an
             update, without calling `update`; without a live object, `apply(None, body)` and then as a create

- `live` is the stored object with its managedFields; None, not an empty object, if it does not exist. `new` carries the
  managedFields of the request. If they are absent or equal the stored ones, they are ignored. `[{}]` (which a codec
  makes of `[]`) clears them. Any other valid value replaces the stored ones.
- `manager` is the request's fieldManager, or the user agent up to its slash. Apply requires a fieldManager.
- `subresource` is the part of the object that is written (`status`, `finalize`, `resize` …). It has its own entries. A
  write to it ignores the request's managedFields, and does not own fields that it cannot change.
- All arguments have the same version. If the served version is not the stored one, manage fields in the served version
  and convert afterwards.
- Updates add no managedFields to an object that is stored without them; the first apply adds `before-first-apply`.
- `/scale` has its own managedFields: see `scale_handler`.
"""

from ctrlmgr.engine.managedfields.field_manager import FieldManager
from ctrlmgr.engine.managedfields.timestamps import keep_timestamps

__all__ = ["FieldManager", "keep_timestamps"]
