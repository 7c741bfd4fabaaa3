"""ResourceQuota: no namespace uses more than its quotas allow.

Guarantees: what a write is charged is in the log together with the object, or neither is; so what a quota says has been
used is never less than what there is. Charges to the quotas of one namespace are decided one after the other, on the
newest state, and never exceed what a quota allows. Kubernetes writes the charge first, and counts again later.

Rules come from apiserver's `pkg/admission/plugin/resourcequota`; its configuration is that of Kubernetes
(`ResourceQuotaConfiguration`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec

from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.admission.quota.amounts import are_equal
from ctrlmgr.admission.quota.charging import Charge, Limited, charges, configured, hard_of
from ctrlmgr.admission.quota.evaluator import Evaluator
from ctrlmgr.admission.quota.evaluators import Evaluators
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.late import Late
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import ApiError
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.settings.documents import Document

QUOTAS: Final = Resource("", "resourcequotas")
_REMEMBERED = 10_000
"""Quotas whose order is remembered."""

_VERSIONS: Final = (
    "apiserver.config.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1beta1",
    "resourcequota.admission.k8s.io/v1alpha1",
)


class _LimitedResource(msgspec.Struct, forbid_unknown_fields=True):
    resource: str
    apiGroup: str = ""  # noqa: N815  # the name that the file has for it
    matchContains: list[str] = []  # noqa: N815  # the same
    matchScopes: list[dict[str, Any]] = []  # noqa: N815  # the same


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    limitedResources: list[_LimitedResource] = []  # noqa: N815  # the same


def read_limited(document: Document | None) -> Sequence[Limited]:
    """Return what is limited by configuration; raises `SettingsError`."""
    if document is None:
        return ()
    found = document.value.get("kind") if isinstance(document.value, dict) else None
    kind = "Configuration" if found == "Configuration" else "ResourceQuotaConfiguration"
    listed = document.read(kind, _VERSIONS, _Configuration).limitedResources
    return [configured(msgspec.to_builtins(each)) for each in listed]


class _Seniority:
    """In which order quotas were made, as far as their times tell too little: of one second, by when they were met."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def meet(self, quotas: Sequence[Object]) -> None:
        """Note quotas that were not met before; those that come together were last written in their order."""
        new = [quota for quota in quotas if quota.uid not in self._places]
        if len(self._places) > _REMEMBERED:
            self._places.clear()
        for quota in sorted(new, key=lambda quota: quota.revision):
            self._places[quota.uid] = len(self._places)

    def ordered(self, quotas: Sequence[Object]) -> Sequence[Object]:
        """Return quotas, the first to be made first."""
        if len(quotas) < 2:
            return quotas
        return sorted(quotas, key=lambda quota: (quota.metadata.creation_timestamp or "", self._place(quota)))

    def _place(self, quota: Object) -> int:
        return self._places.get(quota.uid, len(self._places))


class ResourceQuota(Plugin):
    """Charges new and growing objects to the quotas of their namespace."""

    name: ClassVar[str] = "ResourceQuota"

    def __init__(self, limited: Sequence[Limited] = ()) -> None:
        """Refuse what is `limited` where no quota covers it."""
        self._evaluators = Evaluators()
        self._limited = limited
        self._seniority = _Seniority()

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at what may use more."""
        evaluator = self._evaluators.of(resource)
        return evaluator is not None and evaluator.handles(subresource, operation)

    def wants_object(self, attributes: Attributes) -> bool:
        """Look at the object where there are quotas."""
        return bool(attributes.namespace) and bool(self._limited or attributes.view.list(QUOTAS, attributes.namespace))

    def validate(self, attributes: Attributes) -> None:
        """Have what fits charged, and what does not fit refused, in the moment of the append."""
        quotas = attributes.view.list(QUOTAS, attributes.namespace) if attributes.namespace else ()
        if not quotas and not (attributes.namespace and self._limited):
            return
        evaluator = self._evaluators.of(attributes.resource)
        if evaluator is None or not self._limits(attributes, evaluator, quotas):
            return
        if attributes.dry_run:
            self._charges(attributes, evaluator, attributes.view)  # it only judges; nothing will be appended
            return

        def charge(view: View) -> Sequence[Proposal]:
            try:
                return [_proposal(each) for each in self._charges(attributes, evaluator, view)]
            except ApiError as error:
                error.refused_by = self.name
                raise

        attributes.late.append(Late(f"quotas of {attributes.namespace}", charge))

    def _limits(self, attributes: Attributes, evaluator: Evaluator, quotas: Sequence[Object]) -> bool:
        """Whether one of a namespace's quotas could have anything to say to a write."""
        if not evaluator.concerns(attributes):
            return False
        self._seniority.meet(quotas)
        return bool(self._limited) or any(evaluator.names(hard_of(quota)) for quota in quotas)

    def _charges(self, attributes: Attributes, evaluator: Evaluator, view: View) -> Sequence[Charge]:
        quotas = self._seniority.ordered(view.list(QUOTAS, attributes.namespace))
        found = charges(attributes, evaluator, quotas, self._limited)
        return [each for each in found if not are_equal(each.used, each.quota.used)]


def _proposal(charge: Charge) -> Proposal:
    quota = charge.quota
    changed = quota.with_status(quota.hard, charge.used)
    return Proposal(EventType.MODIFIED, changed, quota.object.revision)
