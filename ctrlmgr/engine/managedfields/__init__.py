"""Field management and server-side apply, which record the managers of fields (apimachinery `util/managedfields`).

Guarantees:
- The value of metadata.managedFields is the one that Kubernetes would have written, including the order of keys.
- The functions never change their arguments, and their results share structure with the arguments. A caller that
  changes a result in place must copy it first. In a returned object, only the object and its metadata are new dicts.
- Fields that the server sets have no owner, because `update` runs on the object in the request, before strategies and
  allocation change this object.
- A write that changes no field leaves the stored managedFields unchanged.

The engine calls a kind's `FieldManager` in the order of apiserver's handlers and registry store, with these arguments:

    create   codec.decode → default → update(None, new) → admission → prepare_for_create → …
    update   codec.decode → default → update(live, new) → admission → prepare_for_update → keep_timestamps(live, new)
    patch    live in the served version → patch → codec.read → default → update(live, patched) → as an update
    apply    body, decoded as JSON or YAML but not read by the codec → apply(live, body) → codec.read → default → as an
             update, without calling `update`; without a live object, `apply(None, body)` and then as a create

- The argument `live` is the stored object with its managedFields; it is None, not an empty object, if the object does
  not exist. The argument `new` contains the managedFields of the request. The engine ignores a request's managedFields
  if they are absent or equal to the stored managedFields. The value `[{}]`, which a codec also returns for `[]`, clears
  the stored managedFields. Any other valid value replaces the stored managedFields.
- The argument `manager` is the request's fieldManager or, if there is none, the user agent up to its slash. An apply
  requires a fieldManager.
- The argument `subresource` is the part of the object that is written (`status`, `finalize`, `resize` …). A subresource
  has its own entries in managedFields. A write to a subresource ignores the request's managedFields. The manager of
  such a write does not own fields that the write cannot change.
- The objects in all arguments have the same API version. If the served version is not the stored version, fields are
  managed in the served version, and the object is converted afterwards.
- Updates add no managedFields to an object that is stored without them; the first apply adds `before-first-apply`.
- The subresource `/scale` has its own managedFields; see `scale_handler`.
"""

from ctrlmgr.engine.managedfields.field_manager import FieldManager
from ctrlmgr.engine.managedfields.timestamps import keep_timestamps

__all__ = ["FieldManager", "keep_timestamps"]
