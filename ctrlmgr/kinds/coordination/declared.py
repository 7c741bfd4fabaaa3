"""The declarations of the kinds of `coordination.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.coordination import printers
from ctrlmgr.kinds.coordination.lease import LeaseStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

KINDS = (Declaration("coordination.k8s.io/v1", "Lease", strategy=LeaseStrategy(), printer=printers.LEASE),)
