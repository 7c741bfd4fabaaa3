"""The registry of admission plugins: lists all plugins in Kubernetes' order, and selects the enabled plugins.

Each plugin has one line in `PLUGINS` and one module in `ctrlmgr.admission.plugins`. The order and the defaults of the
plugins are those of Kubernetes' `pkg/kubeapiserver/options/plugins.go` (`AllOrderedPlugins`). The registry accepts the
names of all of Kubernetes' plugins, so that flags of kube-apiserver work. The registry accepts the name of a plugin
that has no module, but never calls this plugin. A plugin without a module checks kinds that ctrlmgr only stores, or
does nothing unless a feature gate is enabled.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from ctrlmgr.admission.admission_chain import Chain
from ctrlmgr.admission.admission_configuration import read_configuration
from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.plugins.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
)
from ctrlmgr.admission.plugins.default_ingress_class import DefaultIngressClass
from ctrlmgr.admission.plugins.default_storage_class import DefaultStorageClass
from ctrlmgr.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from ctrlmgr.admission.plugins.limit_ranger import LimitRanger
from ctrlmgr.admission.plugins.mutating_policies import MUTATING_BINDINGS, MUTATING_POLICIES, MutatingAdmissionPolicy
from ctrlmgr.admission.plugins.mutating_webhooks import MutatingAdmissionWebhook
from ctrlmgr.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from ctrlmgr.admission.plugins.node_declared_features import NodeDeclaredFeatureValidator
from ctrlmgr.admission.plugins.node_restriction import NodeRestriction
from ctrlmgr.admission.plugins.optional.always import AlwaysAdmit, AlwaysDeny
from ctrlmgr.admission.plugins.optional.always_pull_images import AlwaysPullImages
from ctrlmgr.admission.plugins.optional.deny_service_external_ips import DenyServiceExternalIPs
from ctrlmgr.admission.plugins.optional.event_rate_limit import EventRateLimit
from ctrlmgr.admission.plugins.optional.image_policy_webhook import ImagePolicyWebhook
from ctrlmgr.admission.plugins.optional.namespace_existence import NamespaceAutoProvision, NamespaceExists
from ctrlmgr.admission.plugins.optional.owner_references import OwnerReferencesPermissionEnforcement
from ctrlmgr.admission.plugins.optional.pod_node_selector import PodNodeSelector
from ctrlmgr.admission.plugins.optional.pod_placement_plugins import (
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
)
from ctrlmgr.admission.plugins.optional.pod_toleration_restriction import PodTolerationRestriction
from ctrlmgr.admission.plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from ctrlmgr.admission.plugins.pod_group_protection import PodGroupProtection
from ctrlmgr.admission.plugins.pod_priority import Priority
from ctrlmgr.admission.plugins.pod_resize_validator import PodResizeValidator
from ctrlmgr.admission.plugins.pod_runtime_class import RuntimeClass
from ctrlmgr.admission.plugins.pod_security import PodSecurity
from ctrlmgr.admission.plugins.pod_service_account import SERVICE_ACCOUNTS, ServiceAccount
from ctrlmgr.admission.plugins.pod_topology_labels import PodTopologyLabels
from ctrlmgr.admission.plugins.quota_enforcement import QUOTAS, ResourceQuota, read_limited
from ctrlmgr.admission.plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from ctrlmgr.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from ctrlmgr.admission.plugins.validating_policies import BINDINGS, POLICIES, ValidatingAdmissionPolicy
from ctrlmgr.admission.plugins.validating_webhooks import ValidatingAdmissionWebhook
from ctrlmgr.admission.podsecurity.pod_security_configuration import read_pod_security
from ctrlmgr.admission.webhooks.credentials import HookCredentials, read_credentials
from ctrlmgr.admission.webhooks.hooks import MUTATING, VALIDATING
from ctrlmgr.api.resource import Resource
from ctrlmgr.authorization.authorizer import AlwaysAllow, Authorizer
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.settings.configuration_files import Document


class Parts(NamedTuple):
    """The dependencies that the constructors of plugins need."""

    clock: Clock
    kinds: Kinds
    authorizer: Authorizer
    """The authorizer with which plugins check the user's rights."""
    configured: Mapping[str, Document]
    """The plugins' configurations from `--admission-control-config-file`, by plugin name."""
    settings: AdmissionSettings = AdmissionSettings()

    def asking(self, plugin: str) -> tuple[Kinds, Authorizer, HookCredentials]:
        """Return the dependencies of a webhook plugin, including the credentials that the server sends to webhooks.

        Raises `SettingsError` if the plugin's configuration is invalid.
        """
        return self.kinds, self.authorizer, read_credentials(self.configured.get(plugin))


def _tolerating(parts: Parts) -> Plugin:
    given = parts.settings
    return DefaultTolerationSeconds(
        given.default_not_ready_toleration_seconds, given.default_unreachable_toleration_seconds
    )


class Entry(NamedTuple):
    """One admission plugin that the server knows."""

    name: str
    make: Callable[[Parts], Plugin] | None = None
    """Creates the plugin; raises `SettingsError` if the plugin's configuration is invalid.

    The field is None if the plugin does nothing in ctrlmgr.
    """
    is_default: bool = True


PLUGINS: Final[Sequence[Entry]] = (
    Entry("AlwaysAdmit", lambda parts: AlwaysAdmit(), is_default=False),
    Entry("NamespaceAutoProvision", lambda parts: NamespaceAutoProvision(parts.kinds), is_default=False),
    Entry("NamespaceLifecycle", lambda parts: NamespaceLifecycle()),
    Entry("NamespaceExists", lambda parts: NamespaceExists(), is_default=False),
    Entry("LimitPodHardAntiAffinityTopology", lambda parts: LimitPodHardAntiAffinityTopology(), is_default=False),
    Entry("LimitRanger", lambda parts: LimitRanger()),
    Entry("ServiceAccount", lambda parts: ServiceAccount(parts.clock)),
    Entry("NodeRestriction", lambda parts: NodeRestriction(parts.authorizer), is_default=False),
    Entry("TaintNodesByCondition", lambda parts: TaintNodesByCondition()),
    Entry("AlwaysPullImages", lambda parts: AlwaysPullImages(), is_default=False),
    Entry(
        "ImagePolicyWebhook",
        lambda parts: ImagePolicyWebhook(parts.configured.get("ImagePolicyWebhook"), parts.clock),
        is_default=False,
    ),
    Entry("PodSecurity", lambda parts: PodSecurity(read_pod_security(parts.configured.get("PodSecurity")))),
    Entry("PodNodeSelector", lambda parts: PodNodeSelector(parts.configured.get("PodNodeSelector")), is_default=False),
    Entry("Priority", lambda parts: Priority()),
    Entry("DefaultTolerationSeconds", _tolerating),
    Entry(
        "PodTolerationRestriction",
        lambda parts: PodTolerationRestriction(parts.configured.get("PodTolerationRestriction")),
        is_default=False,
    ),
    Entry(
        "EventRateLimit",
        lambda parts: EventRateLimit(parts.configured.get("EventRateLimit"), parts.clock),
        is_default=False,
    ),
    Entry("ExtendedResourceToleration", lambda parts: ExtendedResourceToleration(), is_default=False),
    Entry("DefaultStorageClass", lambda parts: DefaultStorageClass()),
    Entry("StorageObjectInUseProtection", lambda parts: StorageObjectInUseProtection()),
    Entry("PodGroupProtection", lambda parts: PodGroupProtection()),
    Entry(
        "OwnerReferencesPermissionEnforcement",
        lambda parts: OwnerReferencesPermissionEnforcement(parts.kinds, parts.authorizer),
        is_default=False,
    ),
    Entry("PersistentVolumeClaimResize", lambda parts: PersistentVolumeClaimResize()),
    Entry("RuntimeClass", lambda parts: RuntimeClass()),
    Entry("CertificateApproval", lambda parts: CertificateApproval(parts.authorizer)),
    Entry("CertificateSigning", lambda parts: CertificateSigning(parts.authorizer)),
    Entry("ClusterTrustBundleAttest", lambda parts: ClusterTrustBundleAttest(parts.authorizer)),
    Entry("CertificateSubjectRestriction", lambda parts: CertificateSubjectRestriction()),
    Entry("DefaultIngressClass", lambda parts: DefaultIngressClass()),
    Entry("DenyServiceExternalIPs", lambda parts: DenyServiceExternalIPs(), is_default=False),
    Entry("PodTopologyLabels", lambda parts: PodTopologyLabels()),
    Entry("PodGroupWorkloadExists"),
    Entry("NodeDeclaredFeatureValidator", lambda parts: NodeDeclaredFeatureValidator()),
    Entry("JobValidation"),
    Entry("PodResizeValidator", lambda parts: PodResizeValidator()),
    Entry("MutatingAdmissionPolicy", lambda parts: MutatingAdmissionPolicy(parts.kinds, parts.authorizer)),
    Entry(
        "MutatingAdmissionWebhook",
        lambda parts: MutatingAdmissionWebhook(*parts.asking("MutatingAdmissionWebhook")),
    ),
    Entry("ValidatingAdmissionPolicy", lambda parts: ValidatingAdmissionPolicy(parts.kinds, parts.authorizer)),
    Entry(
        "ValidatingAdmissionWebhook",
        lambda parts: ValidatingAdmissionWebhook(*parts.asking("ValidatingAdmissionWebhook")),
    ),
    Entry("ResourceQuota", lambda parts: ResourceQuota(read_limited(parts.configured.get("ResourceQuota")))),
    Entry("AlwaysDeny", lambda parts: AlwaysDeny(), is_default=False),
)
"""All plugins, in the order in which they are called."""


READ: Final[Sequence[Resource]] = (
    MUTATING,
    VALIDATING,
    POLICIES,
    BINDINGS,
    MUTATING_POLICIES,
    MUTATING_BINDINGS,
    SERVICE_ACCOUNTS,
    QUOTAS,
)
"""The resources that plugins read for most writes. A process that caches only some resources always caches these.
"""


def default_chain(kinds: Kinds, clock: Clock, own: Sequence[Plugin] = ()) -> Chain:
    """Return the admission chain for tests: all default plugins except ServiceAccount.

    ServiceAccount is left out because no controller creates accounts in tests. In the returned chain, all authorization
    checks of plugins succeed. `own` contains the additional plugins of the application under test.
    """
    return new_chain(kinds, clock, AdmissionSettings(disable_plugins=("ServiceAccount",)), AlwaysAllow(), own)


def new_chain(
    kinds: Kinds, clock: Clock, settings: AdmissionSettings, authorizer: Authorizer, own: Sequence[Plugin] = ()
) -> Chain:
    """Return the admission chain for settings.

    Raises `SettingsError` if a plugin's name is unknown or a file is invalid. The chain calls `own`, the plugins of an
    application, after the plugins that change objects, and before webhooks and quotas.
    """
    names = {entry.name for entry in PLUGINS}
    parts = Parts(clock, kinds, authorizer, read_configuration(settings.control_config_file, names), settings)
    made = (entry.make(parts) for entry in enabled(settings, own) if entry.make is not None)
    return Chain(list(made), clock)


def enabled(settings: AdmissionSettings, own: Sequence[Plugin] = ()) -> Iterator[Entry]:
    """Yield the enabled plugins in their order.

    Raises `SettingsError` if the settings name an unknown plugin, or both enable and disable one (apiserver
    `AdmissionOptions.Validate`).
    """
    on, off = frozenset(settings.enable_plugins), frozenset(settings.disable_plugins)
    plugins = _with_own(own)
    known = [entry.name for entry in plugins]
    _check("--enable-admission-plugins", on, known)
    _check("--disable-admission-plugins", off, known)
    if both := on & off:
        raise SettingsError(f"--enable-admission-plugins and --disable-admission-plugins both name {_listed(both)}")
    for entry in plugins:
        if entry.name in on or (entry.is_default and entry.name not in off):
            yield entry


def _with_own(own: Sequence[Plugin]) -> Sequence[Entry]:
    """Return all plugins; the plugins of the application are placed before the first policy or webhook plugin."""
    names = [entry.name for entry in PLUGINS]
    for each in own:
        if each.name in names:
            raise SettingsError(f"two admission plugins are called {each.name}")
        names.append(each.name)
    at = next(index for index, entry in enumerate(PLUGINS) if entry.name == "MutatingAdmissionPolicy")
    entries = [Entry(each.name, partial(_given, each)) for each in own]
    return [*PLUGINS[:at], *entries, *PLUGINS[at:]]


def _given(plugin: Plugin, parts: Parts) -> Plugin:
    return plugin


def _check(flag: str, names: Iterable[str], known: Sequence[str]) -> None:
    for name in sorted(names):
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise SettingsError(f"{flag}: there is no admission plugin {name!r}{hint}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
