"""The plan of a kind, which is its compiled form: codecs, field manager, and served and stored versions.

A kind may be stored as another kind (`events.k8s.io` Events as core Events), or in another version. Bodies and patches
of requests are in the served version. All steps after decoding (defaults, validation, append) use the stored version.
Custom kinds (`Kind.converts_last`) stay in the served version until they are encoded for the log.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from ctrlmgr.api.field import FieldError, refuse
from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import Kind
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.managedfields import FieldManager
from ctrlmgr.engine.request_options import Body, WriteOptions
from ctrlmgr.engine.writes.patching import split_warnings
from ctrlmgr.errors import Invalid
from ctrlmgr.schema.codec import OtherVersion

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class Plan:
    """The compiled form of one kind; `resource` is its name for clients, and `storage` is its name in the log."""

    __slots__ = (
        "_encode",
        "_reads_served",
        "_to_storage",
        "_to_stored",
        "codec",
        "kind",
        "manager",
        "resource",
        "storage",
        "strategy",
    )

    def __init__(self, kind: Kind, kinds: Kinds) -> None:
        """Compile `kind`."""
        kind.prepare()
        stored = kinds.stored(kind.storage) or kind
        self.kind = kind
        self.resource = kind.resource
        self.storage = kind.storage
        self.strategy = kind.strategy
        self.codec = kind.codec
        versions = {each.gvk.api_version for each in kinds if each.storage == kind.storage}
        versions |= kind.versions
        name, version = kind.gvk.kind, kind.gvk.api_version
        self.manager = FieldManager(
            kind.merge_type,
            version,
            kind=name,
            versions=versions,
            resets=kind.resets,
            translate=kind.translate,
            schema_changes=kind.is_custom,
        )
        self._encode = stored.codec.encode
        self._reads_served = kind.converts_last
        self._to_storage = None if kind.converts_last else kind.to_storage
        self._to_stored = kind.to_storage if kind.converts_last else None

    def decode(self, body: Body, options: WriteOptions, warnings: list[str]) -> Unstructured:
        """Decode a body in the served version.

        Unknown fields of the body are refused, reported as warnings or ignored, according to the options.
        """
        try:
            fields, problems = self.codec.decode(body.data, body.media_type)
        except OtherVersion as error:
            if error.problems and options.field_validation == "Strict":
                raise error.strictly from error
            error.warnings = split_warnings(error.problems) if options.field_validation == "Warn" else ()
            raise
        if problems:
            if options.field_validation == "Strict":
                raise self.codec.refuse_strictly(problems)
            if options.field_validation == "Warn":
                warnings += split_warnings(problems)
        if body.heard is not None:
            body.heard(fields, lambda: self._echo(fields))
        return fields

    def _echo(self, fields: Unstructured) -> bytes:
        """Return a decoded body with its defaults, in the served version; `fields` is not changed."""
        version = (fields.get("metadata") or {}).get("resourceVersion")
        if self.kind.calls_out:  # defaulting needs no conversion webhook
            return self.codec.encode(self.stored(deepcopy(fields)))
        body = self.shown(self.encode(self.stored(deepcopy(fields)))).body
        if not version:
            return body
        echoed = _decode(body)
        echoed["metadata"]["resourceVersion"] = version
        return _encode(echoed)

    def owned(
        self, live: Unstructured | None, fields: Unstructured, manager: str, now: str, subresource: str
    ) -> Unstructured:
        """Return a decoded object in the form that is stored, with defaults and managed fields.

        The argument `live` is the object before the write, in the served version; None if the object is created. The
        argument `fields` is changed in place. The objects `fields` and `live` may share parts. Setting defaults does
        not change shared parts, because `live` already has its defaults.
        """
        if self._to_storage is None:
            keeps_spec = live is not None and fields.get("spec") is live.get("spec")
            if keeps_spec and subresource == "status" and self.strategy.has_status:
                self.strategy.default_status(fields)
            else:
                self.strategy.default(fields)
            return self.manager.update(live, fields, manager, now, subresource)
        return self.stored(self.manager.update(live, fields, manager, now, subresource))

    def stored(self, fields: Unstructured) -> Unstructured:
        """Convert a decoded object into the stored version, with its defaults; `fields` is changed."""
        if self._to_storage is not None:
            fields = self._to_storage(fields)
        self.strategy.default(fields)
        return fields

    def shown(self, obj: Object) -> Object:
        """Return a stored object in the served version."""
        return self.kind.from_storage(obj) if self.kind.from_storage is not None else obj

    def live(self, obj: Object) -> Unstructured:
        """Return a stored object in the served version as new dicts, with its resourceVersion."""
        fields = self.shown(obj).to_dict()
        fields["metadata"]["resourceVersion"] = str(obj.revision)
        return fields

    def read(self, obj: Object) -> Unstructured:
        """Return a stored object in the version that the strategy processes, as new dicts without a resourceVersion."""
        shown = self.shown(obj) if self._reads_served else obj
        fields = shown.to_dict()
        fields["metadata"].pop("resourceVersion", None)
        return fields

    def encode(self, fields: Unstructured) -> Object:
        """Encode `fields`, an object in the strategy's version that is not stored yet."""
        if self._to_stored is not None:
            fields = self._to_stored(fields)
        return Object(self.storage, self._encode(fields))

    def made(self, fields: Unstructured) -> Object:
        """Return the result of `encode`, but avoid decoding the metadata again."""
        if self._to_stored is not None:
            return self.encode(fields)
        return Object(self.storage, self._encode(fields), 0, _known(fields["metadata"]))

    def refuse(self, name: str, errors: list[FieldError]) -> Invalid:
        """Return the 422 error for an invalid object of this kind."""
        return refuse(self.kind.gvk.kind, self.kind.storage.group, name, errors)


def _known(metadata: Unstructured) -> ObjectMeta | None:
    """Return metadata in its stored form; None if a field is empty, because the encoder may omit an empty field."""
    if not all(metadata.values()):
        return None
    known = msgspec.convert(metadata, ObjectMeta)
    return msgspec.structs.replace(known, resource_version="") if known.resource_version else known
