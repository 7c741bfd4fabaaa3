"""Creates the OpenAPI v2 document with all kinds, for old clients (`kubectl` up to 1.26, code generators)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.schema import published_schema
from ctrlmgr.server.describe.openapi.descriptions import described
from ctrlmgr.server.describe.openapi.paths import served_paths
from ctrlmgr.server.describe.version_info import git_version

TITLE = "Kubernetes"


def swagger(kinds: Kinds) -> dict[str, Any]:
    """Return the OpenAPI v2 document of `kinds`."""
    shipped, definitions = published_schema.openapi(), kinds.definitions
    custom = [kind.document for kind in kinds.custom() if kind.document is not None]
    return {
        "swagger": "2.0",
        "info": {"title": TITLE, "version": git_version()},
        "paths": {**served_paths(kinds), **{path: item for each in custom for path, item in each.paths().items()}},
        "definitions": {
            **{name: described(name, definitions.raw(name)) for name in _shown(kinds)},
            **{name: node for each in custom for name, node in each.definitions(v2=True).items()},
        },
        "parameters": shipped["parameters"],
        "securityDefinitions": shipped["securityDefinitions"],
        "security": shipped["security"],
    }


def _shown(kinds: Kinds) -> Sequence[str]:
    """Return the names of the definitions, without definitions of optional versions that are not served."""
    served = {kind.api_version for kind in kinds}
    optional = published_schema.optional().items()
    hidden = {name for version, each in optional if version not in served for name in each.definitions}
    return [name for name in kinds.definitions if name not in hidden]
