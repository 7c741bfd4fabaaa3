"""The `kubectl get` columns of discovery.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import UNSET, Fields, age, printer, shown


def _endpoint_slice(slice_: Fields, ages: Ages) -> list[Any]:
    ports = [str(each["port"]) if each.get("port") is not None else "*" for each in slice_.get("ports") or ()]
    addresses = [each for endpoint in slice_.get("endpoints") or () for each in endpoint.get("addresses") or ()]
    return [
        slice_.get("addressType", ""),
        shown(ports, nothing=UNSET),
        shown(addresses, nothing=UNSET),
        age(slice_, ages),
    ]


ENDPOINT_SLICE = printer("AddressType|Ports|Endpoints|Age", _endpoint_slice)
