"""ResourceQuota: refuses writes that exceed the quotas of their namespace.

Guarantees: an object and its charge to the quotas are appended together or not at all. Therefore the used amount in a
quota is never less than the actual usage. Charges to the quotas of one namespace are computed sequentially from the
newest state, so the used amounts never exceed a quota. In contrast, Kubernetes writes the charge before the object, and
corrects the charge later if the write of the object fails.

Rules come from apiserver's `pkg/admission/plugin/resourcequota`; its configuration is Kubernetes'
`ResourceQuotaConfiguration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import inf
from typing import Any, ClassVar, Final

import msgspec

from ctrlmgr.admission.admission_plugin import Plugin, Registration
from ctrlmgr.admission.quota.charging import LazyUsage, Limited, Quota, charges, configured
from ctrlmgr.admission.quota.evaluator import Evaluator
from ctrlmgr.admission.quota.evaluators import Evaluators
from ctrlmgr.admission.quota.quota_amounts import Amounts
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.deferred_proposals import DeferredProposals
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import ApiError
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.settings.configuration_files import Document

QUOTAS: Final = Resource("", "resourcequotas")
_ENTRIES: Final = 10_000
"""The maximum number of quotas in the caches of their order and of their content."""
_SIZE: Final = 32 * 1024 * 1024
"""The maximum total size of the quotas whose content is cached, in bytes."""

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
    """Return the limited resources of the plugin's configuration.

    Raises `SettingsError` if the configuration is invalid.
    """
    if document is None:
        return ()
    found = document.value.get("kind") if isinstance(document.value, dict) else None
    kind = "Configuration" if found == "Configuration" else "ResourceQuotaConfiguration"
    listed = document.read(kind, _VERSIONS, _Configuration).limitedResources
    return [configured(msgspec.to_builtins(each)) for each in listed]


class _Seniority:
    """The order in which ResourceQuotas were created.

    Creation timestamps have a resolution of one second. Therefore this class also records the order in which the plugin
    first read the quotas.
    """

    def __init__(self) -> None:
        self._places: BoundedCache[str, int] = BoundedCache("quota-order", entries=_ENTRIES)
        self._next = count()

    def meet(self, quotas: Sequence[Quota]) -> None:
        """Record quotas that are new to this plugin; the new quotas are ordered by their revisions."""
        new = [quota.object for quota in quotas if self._places.get(quota.object.uid) is None]
        for quota in sorted(new, key=lambda quota: quota.revision):
            self._places.put(quota.uid, next(self._next))

    def ordered(self, quotas: Sequence[Quota]) -> Sequence[Quota]:
        """Return quotas in the order of their creation."""
        if len(quotas) < 2:
            return quotas
        return sorted(quotas, key=lambda quota: self._rank(quota.object))

    def _rank(self, quota: Object) -> tuple[str, float]:
        return quota.metadata.creation_timestamp or "", self._places.peek(quota.uid, inf)


class _CachedQuotas:
    """A cache of the quotas as they were last read or charged.

    The plugin stores the quotas that it writes. Therefore the class need not decode a quota that it has written when
    the log returns the quota.
    """

    def __init__(self) -> None:
        self._quotas: BoundedCache[Key, Quota] = BoundedCache("quotas", entries=_ENTRIES, size=_SIZE)

    def read(self, objects: Sequence[Object]) -> Sequence[Quota]:
        """Return the quotas of a namespace, decoded."""
        return [self._read(each) for each in objects]

    def _read(self, obj: Object) -> Quota:
        known = self._quotas.get(obj.key)
        if known is not None and known.object is obj:
            return known
        quota = known.at(obj) if known is not None and known.object.body is obj.body else Quota(obj)
        self.keep(quota)
        return quota

    def keep(self, quota: Quota) -> None:
        """Add a quota to the cache."""
        self._quotas.put(quota.object.key, quota, len(quota.object.body))


class ResourceQuota(Plugin):
    """Charges new and growing objects to the quotas of their namespace."""

    name: ClassVar[str] = "ResourceQuota"

    def __init__(self, limited: Sequence[Limited] = ()) -> None:
        """Create the plugin; writes that use `limited` resources are refused if no quota covers these resources."""
        self._evaluators = Evaluators()
        self._limited = limited
        # The plugin refuses writes that use limited resources even if the namespace has no quota, so it has no
        # `activated_by`.
        self.activated_by = None if limited else Registration(QUOTAS, of_namespace=True)
        self._seniority = _Seniority()
        self._known = _CachedQuotas()

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: writes that may increase the usage of quotas."""
        evaluator = self.evaluator(resource)
        return evaluator is not None and evaluator.handles(subresource, operation)

    def evaluator(self, resource: Resource) -> Evaluator | None:
        """Return the evaluator that measures objects of a resource; None if quotas do not count the resource."""
        return self._evaluators.of(resource)

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the plugin needs the object, which is true for objects in namespaces.

        A ResourceQuota never counts cluster-scoped objects.
        """
        return bool(attributes.namespace)

    def validate(self, attributes: Attributes) -> None:
        """Attach a quota charge to the write; the charge is computed when the write is appended.

        If the charge exceeds a quota, the append raises `Forbidden`.
        """
        evaluator = self._charging(attributes)
        if evaluator is None:
            return
        use = LazyUsage(evaluator, attributes.fields, attributes.now)
        if attributes.dry_run:
            self.charges(attributes, use, attributes.view)  # a dry run appends no event, so the charge is only checked
        else:
            attributes.late.append(self._late(attributes, use))

    def _charging(self, attributes: Attributes) -> Evaluator | None:
        """Return the evaluator of a write if a quota of its namespace may limit the write; otherwise None."""
        if not attributes.namespace:
            return None
        quotas = self._known.read(attributes.view.list(QUOTAS, attributes.namespace))
        if not quotas and not self._limited:
            return None
        evaluator = self._evaluators.of(attributes.resource)
        return evaluator if evaluator is not None and self._limits(attributes, evaluator, quotas) else None

    def _late(self, attributes: Attributes, use: LazyUsage) -> DeferredProposals:
        """Return the deferred charge of a write; `use` is the amount that the write uses."""
        return DeferredProposals(f"quotas of {attributes.namespace}", _Charge(self, attributes, use))

    def _limits(self, attributes: Attributes, evaluator: Evaluator, quotas: Sequence[Quota]) -> bool:
        """Return whether a quota of the namespace may limit a write."""
        if not evaluator.concerns(attributes):
            return False
        self._seniority.meet(quotas)
        return bool(self._limited) or any(quota.limited(evaluator) for quota in quotas)

    def charges(self, attributes: Attributes, use: LazyUsage, view: View) -> Sequence[Quota]:
        """Return the quotas of a view with the charge of a write; raises `Forbidden` if the write exceeds a quota."""
        quotas = self._known.read(view.list(QUOTAS, attributes.namespace))
        self._seniority.meet(quotas)
        charged = charges(attributes, use, self._seniority.ordered(quotas), self._limited)
        for each in charged:
            self._known.keep(each)
        return charged

    def __reduce__(self) -> Any:
        """Pickle the configuration without the caches, so another process unpickles a plugin with empty caches."""
        return ResourceQuota, (self._limited,)


class _Charge:
    """Computes the charge of a write; instances can be pickled, so that another process can compute the charge."""

    def __init__(self, plugin: ResourceQuota, attributes: Attributes, use: LazyUsage) -> None:
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
        amounts = use.amounts  # computed here, where a long computation delays no other request
        return _charge, (self._plugin, slim, _encode(attributes.object), _encode(attributes.old), amounts)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _charge(plugin: ResourceQuota, attributes: Attributes, new: bytes, old: bytes, amounts: Amounts) -> _Charge:
    """Return the charge of a write, as another process computes it."""
    attributes = msgspec.structs.replace(attributes, object=_decode(new), old=_decode(old))
    evaluator = plugin.evaluator(attributes.resource)
    assert evaluator is not None  # without this evaluator, the write would have no charge
    use = LazyUsage(evaluator, attributes.fields, attributes.now)
    use.__dict__["amounts"] = amounts
    return _Charge(plugin, attributes, use)
