"""The declarations of the kinds of `node.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.node import printers
from ctrlmgr.kinds.node.runtime_class import RuntimeClassStrategy

KINDS = (
    Declaration("node.k8s.io/v1", "RuntimeClass", strategy=RuntimeClassStrategy(), printer=printers.RUNTIME_CLASS),
)
