"""ResourceQuota: no namespace uses more than its quotas allow.

Guarantees: what a write is charged is in the log together with the object, or neither is; so what a quota says has been
used is never less than what there is. Charges to the quotas of one namespace are decided one after the other, on the
newest state, and never exceed what a quota allows. Kubernetes writes the charge first, and counts again later.

Rules come from apiserver's `pkg/admission/plugin/resourcequota`; its configuration is that of Kubernetes
(`ResourceQuotaConfiguration`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import inf
from typing import Any, ClassVar, Final

import msgspec

from ctrlmgr.admission.plugin import Plugin, Registration
from ctrlmgr.admission.quota.amounts import Amounts
from ctrlmgr.admission.quota.charging import Limited, Quota, Use, charges, configured
from ctrlmgr.admission.quota.evaluator import Evaluator
from ctrlmgr.admission.quota.evaluators import Evaluators
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import ApiError
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.settings.documents import Document

QUOTAS: Final = Resource("", "resourcequotas")
_ENTRIES: Final = 10_000
"""Quotas of which order and content are cached."""
_SIZE: Final = 32 * 1024 * 1024
"""Bytes of those of which the content is."""

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
        self._places: BoundedCache[str, int] = BoundedCache("quota-order", entries=_ENTRIES)
        self._next = count()

    def meet(self, quotas: Sequence[Quota]) -> None:
        """Note quotas that were not met before; those that come together were last written in their order."""
        new = [quota.object for quota in quotas if self._places.get(quota.object.uid) is None]
        for quota in sorted(new, key=lambda quota: quota.revision):
            self._places.put(quota.uid, next(self._next))

    def ordered(self, quotas: Sequence[Quota]) -> Sequence[Quota]:
        """Return quotas, the first to be made first."""
        if len(quotas) < 2:
            return quotas
        return sorted(quotas, key=lambda quota: self._rank(quota.object))

    def _rank(self, quota: Object) -> tuple[str, float]:
        return quota.metadata.creation_timestamp or "", self._places.peek(quota.uid, inf)


class _Known:
    """The quotas as they were last read or charged: what was charged comes back from the log as it was sent there."""

    def __init__(self) -> None:
        self._quotas: BoundedCache[Key, Quota] = BoundedCache("quotas", entries=_ENTRIES, size=_SIZE)

    def read(self, objects: Sequence[Object]) -> Sequence[Quota]:
        """Return what quotas say."""
        return [self._read(each) for each in objects]

    def _read(self, obj: Object) -> Quota:
        known = self._quotas.get(obj.key)
        if known is not None and known.object is obj:
            return known
        quota = known.at(obj) if known is not None and known.object.body is obj.body else Quota(obj)
        self.keep(quota)
        return quota

    def keep(self, quota: Quota) -> None:
        """Know a quota as this one from now on."""
        self._quotas.put(quota.object.key, quota, len(quota.object.body))


class ResourceQuota(Plugin):
    """Charges new and growing objects to the quotas of their namespace."""

    name: ClassVar[str] = "ResourceQuota"

    def __init__(self, limited: Sequence[Limited] = ()) -> None:
        """Refuse what is `limited` where no quota covers it."""
        self._evaluators = Evaluators()
        self._limited = limited
        # What is limited by configuration is refused where there is no quota.
        self.activated_by = None if limited else Registration(QUOTAS, of_namespace=True)
        self._seniority = _Seniority()
        self._known = _Known()

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at what may use more."""
        evaluator = self.evaluator(resource)
        return evaluator is not None and evaluator.handles(subresource, operation)

    def evaluator(self, resource: Resource) -> Evaluator | None:
        """Return what measures objects of a resource, None if nothing of them is counted."""
        return self._evaluators.of(resource)

    def wants_object(self, attributes: Attributes) -> bool:
        """Look at the object of what is in a namespace."""
        return bool(attributes.namespace)

    def validate(self, attributes: Attributes) -> None:
        """Have what fits charged, and what does not fit refused, in the moment of the append."""
        evaluator = self._charging(attributes)
        if evaluator is None:
            return
        use = Use(evaluator, attributes.fields, attributes.now)
        if attributes.dry_run:
            self.charges(attributes, use, attributes.view)  # it only judges; nothing will be appended
        else:
            attributes.late.append(self._late(attributes, use))

    def _charging(self, attributes: Attributes) -> Evaluator | None:
        """Return what measures a write that a quota of its namespace could have anything to say to."""
        if not attributes.namespace:
            return None
        quotas = self._known.read(attributes.view.list(QUOTAS, attributes.namespace))
        if not quotas and not self._limited:
            return None
        evaluator = self._evaluators.of(attributes.resource)
        return evaluator if evaluator is not None and self._limits(attributes, evaluator, quotas) else None

    def _late(self, attributes: Attributes, use: Use) -> DeferredProposals:
        """Return what charges a write when its turn has come; `use` is what it uses."""
        return DeferredProposals(f"quotas of {attributes.namespace}", _Charge(self, attributes, use))

    def _limits(self, attributes: Attributes, evaluator: Evaluator, quotas: Sequence[Quota]) -> bool:
        """Whether one of a namespace's quotas could have anything to say to a write."""
        if not evaluator.concerns(attributes):
            return False
        self._seniority.meet(quotas)
        return bool(self._limited) or any(quota.limited(evaluator) for quota in quotas)

    def charges(self, attributes: Attributes, use: Use, view: View) -> Sequence[Quota]:
        """Return the quotas that a write is charged to in a view, charged; raises `Forbidden` if it does not fit."""
        quotas = self._known.read(view.list(QUOTAS, attributes.namespace))
        self._seniority.meet(quotas)
        charged = charges(attributes, use, self._seniority.ordered(quotas), self._limited)
        for each in charged:
            self._known.keep(each)
        return charged

    def __reduce__(self) -> Any:
        """Return how to make a plugin of the same configuration, which has met no quotas, in another process."""
        return ResourceQuota, (self._limited,)


class _Charge:
    """Charges a write; also in another process than the one that decided on it."""

    def __init__(self, plugin: ResourceQuota, attributes: Attributes, use: Use) -> None:
        self._plugin = plugin
        self._attributes = attributes
        self._use = use

    def __call__(self, view: View) -> Sequence[Proposal]:
        try:
            charged = self._plugin.charges(self._attributes, self._use, view)
            return [Proposal(EventType.MODIFIED, each.object, each.object.revision) for each in charged]
        except ApiError as error:
            error.refused_by = self._plugin.name
            raise

    def __reduce__(self) -> Any:
        attributes, use = self._attributes, self._use
        slim = msgspec.structs.replace(
            attributes, view=None, random=None, object=None, old=None, late=[], companions=[], memory={}, _home=None
        )
        amounts = use.amounts  # worked out where it may take long
        return _charge, (self._plugin, slim, _encode(attributes.object), _encode(attributes.old), amounts)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _charge(plugin: ResourceQuota, attributes: Attributes, new: bytes, old: bytes, amounts: Amounts) -> _Charge:
    """Return what charges a write that was decided on in another process."""
    attributes = msgspec.structs.replace(attributes, object=_decode(new), old=_decode(old))
    evaluator = plugin.evaluator(attributes.resource)
    assert evaluator is not None  # or there would be nothing to charge
    use = Use(evaluator, attributes.fields, attributes.now)
    use.__dict__["amounts"] = amounts
    return _Charge(plugin, attributes, use)
