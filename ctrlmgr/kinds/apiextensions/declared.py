"""The declarations of the kinds of `apiextensions.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.apiextensions.custom_resource_definition import DefinitionStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

KINDS = (
    Declaration(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        strategy=DefinitionStrategy(),
        stored_version="v1beta1",
        registry_path="apiextensions.k8s.io/customresourcedefinitions",
    ),
)
