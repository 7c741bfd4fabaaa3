"""Converts stored custom objects to one of the versions of their CustomResourceDefinition, and back.

Guarantees: a stored object is first read by the schema of its stored version, with the defaults of that version. After
that, the object is converted to the requested version, as in apiextensions-apiserver's storage codec. If an object was
stored after the last change of the CustomResourceDefinition, the object already has all defaults, and is returned
unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.conversion import asked, bypasses_cache
from ctrlmgr.engine.managedfields.schema_merge_types import Root
from ctrlmgr.errors import UnknownError
from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.extensions.custom.conversion_webhook import Webhook
from ctrlmgr.extensions.custom.custom_codec import CustomCodec
from ctrlmgr.extensions.custom.custom_merge_type import custom_merge_type
from ctrlmgr.extensions.definition import Definition, Version, parse
from ctrlmgr.extensions.structural import Structural
from ctrlmgr.schema.definitions import Definitions

_ENTRIES: Final = 4096
_SIZE: Final = 32 * 1024 * 1024
"""The maximum total size of the cached conversions and of their sources, in bytes."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Versions:
    """The versions of one CustomResourceDefinition: their schemas and codecs, and the conversion between them."""

    def __init__(self, obj: Object, outline: Definition) -> None:
        """Create the versions of a stored CustomResourceDefinition; `outline` is its content without the schemas."""
        self._obj = obj
        self._outline = outline
        self.since: Revision = obj.revision
        """The revision of the CustomResourceDefinition.

        Objects with a later revision are in the stored version, in the form that the version's schema requires.
        """
        self._codecs: dict[str, CustomCodec] = {}
        self._merge_types: dict[str, Root] = {}
        self._ways: dict[tuple[str, str], Webhook] = {}

    @cached_property
    def _whole(self) -> Definition:
        return parse(_decode(self._obj.body))

    def prepare(self, name: str) -> None:
        """Compile all parts with which objects of a version are read and written."""
        for each in (name, self.stored):
            for schema in (self.schema(each), self.status_schema(each)):
                if schema is not None:
                    schema.prepare()
        _ = self.stores_defaults  # the result is computed here and cached

    def version(self, name: str) -> Version:
        """Return a version together with its schema."""
        return _Lazy(self, self._outline.versions[name])

    def raw_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a version as the CustomResourceDefinition contains it."""
        return self._whole.versions[name].raw_schema

    def schema(self, name: str) -> Schema:
        """Return the compiled schema of a version."""
        return self._whole.versions[name].schema

    def status_schema(self, name: str) -> Schema | None:
        """Return the compiled schema of a version's status; None if the schema does not describe a status."""
        return self._whole.versions[name].status_schema

    def _schema(self, name: str) -> Schema | None:
        found = self._whole.versions.get(name)
        return None if found is None else found.schema

    def structural(self, name: str) -> Structural:
        """Return the structural schema of a version."""
        return self.schema(name).structural

    def merge_type(self, name: str, definitions: Definitions) -> Root:
        """Return the schema of a version in the form that field management uses.

        The argument `definitions` contains the OpenAPI definitions of built-in kinds.
        """
        merge_type = self._merge_types.get(name)
        if merge_type is None:
            merge_type = self._merge_types[name] = custom_merge_type(self.structural(name), definitions)
        return merge_type

    def codec(self, name: str) -> CustomCodec:
        """Return the codec of a version."""
        codec = self._codecs.get(name)
        if codec is None:
            kind, group = self._outline.accepted.kind, self._outline.group
            codec = self._codecs[name] = CustomCodec(kind, group, name, self._schema)
        return codec

    @property
    def stored(self) -> str:
        """The name of the stored version."""
        return self._outline.storage.name

    def to_stored(self, fields: Unstructured) -> Unstructured:
        """Convert an object from any version to the stored version; `fields` is changed in place.

        Defaults of the stored version are not set by this method, but when the object is read.
        """
        return self.converted(fields, self.stored)

    @cached_property
    def stores_defaults(self) -> bool:
        """Return whether every stored object has all defaults of the stored version.

        The result is False if an object may have been sent in another version, because such an object has only the
        defaults of that version. The result is also False if
        the schema has a default within `status`, because the server drops the status of a new object.
        """
        schema = self.schema(self.stored)
        if not schema.has_defaults:
            return True
        return len(self._outline.versions) == 1 and not schema.has_default_of("status")

    def read(self, obj: Object) -> Unstructured:
        """Return a stored object in its stored version, with defaults.

        Raises `UnknownError` if the conversion fails.
        """
        fields: Unstructured = _decode(obj.body)
        return self.codec(self._known(fields)).from_store(fields)

    def converted(self, fields: Unstructured, name: str) -> Unstructured:
        """Convert an object to a version; `fields` is changed in place. Raises `UnknownError` if the conversion fails.

        If a webhook converts between versions, `engine.conversion` must already have the webhook's result (see
        `asked`).
        """
        if self._known(fields) == name:
            return fields
        fields = self.moved(fields, name)
        error = self.codec(name).from_other(fields)
        if error is not None:
            raise UnknownError(error.message)
        return fields

    def moved(self, fields: Unstructured, name: str) -> Unstructured:
        """Convert an object to a version without reading it by the schema of that version.

        `fields` is changed in place.
        """
        known = self._known(fields)
        if known == name:
            return fields
        if self.calls_out:
            fields = asked(self._way(known, name), fields)
        fields["apiVersion"] = f"{self._outline.group}/{name}"
        return fields

    @property
    def calls_out(self) -> bool:
        """Return whether a webhook converts between versions."""
        return self._outline.conversion.strategy == "Webhook"

    def _way(self, source: str, target: str) -> Webhook:
        way = self._ways.get((source, target))
        if way is None:
            outline = self._outline
            way = Webhook(outline.conversion, outline.group, outline.accepted.kind, source, target)
            self._ways[source, target] = way
        return way

    def _known(self, fields: Unstructured) -> str:
        """Return the version of an object.

        Raises `UnknownError` if the CustomResourceDefinition no longer has this version.
        """
        group, _, version = fields["apiVersion"].rpartition("/")
        if version not in self._outline.versions or group != self._outline.group:
            raise UnknownError(f"request to convert CR from an invalid group/version: {fields['apiVersion']}")
        return str(version)


class _Lazy(Version):
    """A version of a CustomResourceDefinition.

    The first use of its schema decodes the whole CustomResourceDefinition.
    """

    def __init__(self, versions: Versions, outline: Version) -> None:
        self.__dict__.update(outline.__dict__)
        self._versions = versions

    @property
    def raw_schema(self) -> Mapping[str, Any] | None:
        """The schema as the CustomResourceDefinition contains it."""
        return self._versions.raw_schema(self.name)

    @cached_property
    def schema(self) -> Schema:
        """The compiled schema."""
        return self._versions.schema(self.name)

    @cached_property
    def status_schema(self) -> Schema | None:
        """The compiled schema of the status; None if the schema describes no status."""
        return self._versions.status_schema(self.name)


class Reader:
    """Converts stored objects to one version, and caches the results."""

    def __init__(self, versions: Versions, resource: Resource, version: str) -> None:
        """Create a converter to the version `version` of the CustomResourceDefinition whose versions are `versions`."""
        self._versions = versions
        self._resource = resource
        self._version = version
        self._is_stored = version == versions.stored
        # The cached results; each result consists of a stored object and its converted form.
        self._shown: BoundedCache[Key, tuple[Object, Object]] = BoundedCache(
            "converted-objects", entries=_ENTRIES, size=_SIZE
        )

    def __call__(self, obj: Object) -> Object:
        """Return an object in the converter's version, at the object's revision.

        Raises `UnknownError` if the conversion fails.
        """
        if self._is_stored and obj.revision > self._versions.since and self._versions.stores_defaults:
            return obj
        known = self._shown.get(obj.key)
        if known is not None and known[0] is obj and not (self._versions.calls_out and bypasses_cache()):
            return known[1]
        shown = self._show(obj)
        self._shown.put(obj.key, (obj, shown), len(obj.body) + len(shown.body))
        return shown

    def _show(self, obj: Object) -> Object:
        versions = self._versions
        fields = versions.converted(versions.read(obj), self._version)
        body = versions.codec(self._version).encode(fields)
        return obj if body == obj.body else Object(self._resource, body, obj.revision)
