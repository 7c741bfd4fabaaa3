"""The declarations of the kinds of `apiextensions.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.apiextensions.definition import DefinitionStrategy
from ctrlmgr.kinds.declaration import Declaration

KINDS = (
    Declaration(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        strategy=DefinitionStrategy(),
        stored_version="v1beta1",
        registry_path="apiextensions.k8s.io/customresourcedefinitions",
    ),
)
