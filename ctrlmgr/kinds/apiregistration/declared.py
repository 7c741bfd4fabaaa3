"""What the project knows of each kind of `apiregistration.k8s.io`."""

from __future__ import annotations

from ctrlmgr.engine.managedfields.reset_fields import NO_METADATA
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.apiregistration import printers
from ctrlmgr.kinds.declaration import Declaration


class APIServiceStrategy(Strategy):
    """APIService (kube-aggregator `pkg/registry/apiservice`)."""

    allow_unconditional_update = False
    any_finalizer = True


KINDS = (
    Declaration(
        "apiregistration.k8s.io/v1",
        "APIService",
        registry_path="apiregistration.k8s.io/apiservices",
        strategy=APIServiceStrategy(),
        printer=printers.API_SERVICE,
        resets=NO_METADATA,
    ),
)
