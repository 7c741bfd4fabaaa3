"""Converts an object that admission has changed from its served version back to the stored version."""

from __future__ import annotations

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.calls.call import Calling
from ctrlmgr.engine.conversion import converting
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds


def stored(attributes: Attributes, kind: Kind, patched: Unstructured, kinds: Kinds) -> Calling[Unstructured]:
    """Return a patched object in its stored version, with its defaults set."""
    if attributes.operation is Verb.CONNECT:
        return patched
    if attributes.body_kind is not None:
        return kinds.codec_for(attributes.body_kind).read(patched).fields
    fields = kind.codec.read(patched).fields
    if kind.converts_last:
        return (yield from _back(attributes, kind, fields))
    if kind.to_storage is not None:
        fields = kind.to_storage(fields)
    kind.strategy.default(fields)
    return fields


def _back(attributes: Attributes, kind: Kind, fields: Unstructured) -> Calling[Unstructured]:
    """Convert a custom object, which a webhook has changed in the version of `kind`, back to the request's version."""
    show = attributes.kind.from_storage
    if kind is attributes.kind or show is None:
        return fields
    obj = Object(kind.storage, kind.codec.encode(fields))
    shown_again = yield from converting(lambda: show(obj), attributes.call_inputs)
    fields = msgspec.json.decode(shown_again.body)
    return fields
