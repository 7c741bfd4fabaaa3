"""Field management: who set which field of an object, and server-side apply (apimachinery `util/managedfields`).

Guarantees:
- metadata.managedFields is what Kubernetes would have written, to the order of its keys.
- Nothing given is changed, and results share structure with what was given: who goes on to change a result in place
  does so to a copy. What comes back has fresh dicts for the object and its metadata only.
- What the server sets has no owner: `update` sees what the request says, before strategies and allocation.
- A write that changes nothing leaves managedFields as they are stored, so that there is nothing to write.

How the engine calls a kind's `FieldManager`, in the order of apiserver's handlers and registry store:

    create   codec.decode → default → update(None, new) → admission → prepare_for_create → …
    update   codec.decode → default → update(live, new) → admission → prepare_for_update → keep_timestamps(live, new)
    patch    live in the served version → patch → codec.read → default → update(live, patched) → as an update
    apply    body, decoded as JSON or YAML but not read by the codec → apply(live, body) → codec.read → default → as an
             update, without calling `update`; if there was nothing, `apply(None, body)` and then as a create

- `live` is the stored object with its managedFields; None if there is none, not an empty object. `new` carries the
  managedFields of the request: absent or equal to the stored ones they mean nothing, `[{}]` (which a codec makes
  of `[]`) clears them for good, anything else that is well-formed takes their place.
- `manager` is the request's fieldManager, or the user agent up to its slash. Apply requires a fieldManager.
- `subresource` is the part of the object that is written (`status`, `finalize`, `resize` …). Its entries are apart,
  it never reads managedFields from a request, and the fields that it cannot change are not owned by it.
- Everything is in one version. Where the served version is not the stored one, manage the one and convert after it.
- Of an object that is stored without managedFields updates add none; the first apply makes `before-first-apply`.
- `/scale` shows and takes managedFields of its own: see `scale`.
"""

from ctrlmgr.engine.managedfields.field_manager import FieldManager
from ctrlmgr.engine.managedfields.timestamps import keep_timestamps

__all__ = ["FieldManager", "keep_timestamps"]
