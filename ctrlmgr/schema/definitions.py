"""Provides the OpenAPI definitions, with their codecs and Structs.

Guarantees: each codec and each Struct is created once, at its first use, and all callers share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ctrlmgr.schema import published_schema
from ctrlmgr.schema.codec import Codec
from ctrlmgr.schema.schema import Schemas
from ctrlmgr.schema.structs import Structs, StructType


class Definitions(Schemas):
    """OpenAPI schemas by name, and the codecs and Structs that are created from them."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        """Use the definitions of an OpenAPI v2 document; each definition is passed as JSON."""
        super().__init__(raw)
        self._codecs: dict[tuple[str, str, str], Codec] = {}
        self._structs = Structs()

    @classmethod
    @cache
    def builtin(cls) -> Definitions:
        """Return the definitions of all built-in kinds, including optional kinds; all calls return one instance."""
        return cls(published_schema.all_definitions())

    def struct(self, definition: str) -> StructType:
        """Return the Struct of a definition that is a struct in Go; raises KeyError for an unknown definition."""
        return self._structs.of(self.schema(definition))

    def codec(self, kind: str, api_version: str, definition: str) -> Codec:
        """Return the codec of the kind with this definition; raises KeyError if no definition has this name."""
        key = (kind, api_version, definition)
        codec = self._codecs.get(key)
        if codec is None:
            codec = self._codecs[key] = Codec(kind, api_version, self, self._structs, self.schema(definition))
        return codec
