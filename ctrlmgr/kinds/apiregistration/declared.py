"""The declarations of the kinds of `apiregistration.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.apiregistration import printers
from ctrlmgr.kinds.apiregistration.api_services import APIServiceStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

KINDS = (
    Declaration(
        "apiregistration.k8s.io/v1",
        "APIService",
        registry_path="apiregistration.k8s.io/apiservices",
        strategy=APIServiceStrategy(),
        printer=printers.API_SERVICE,
    ),
)
