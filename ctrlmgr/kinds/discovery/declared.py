"""The declarations of the kinds of `discovery.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.discovery import printers
from ctrlmgr.kinds.discovery.endpoint_slice import EndpointSliceStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

KINDS = (
    Declaration(
        "discovery.k8s.io/v1", "EndpointSlice", strategy=EndpointSliceStrategy(), printer=printers.ENDPOINT_SLICE
    ),
)
