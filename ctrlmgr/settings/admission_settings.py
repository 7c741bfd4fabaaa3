"""The settings of admission, with the same names as the flags of kube-apiserver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import NAMES, SWITCH, TEXT, whole


@dataclass(frozen=True, kw_only=True)
class AdmissionSettings:
    """The settings of the admission plugins that check writes; see `ctrlmgr.admission.plugin_registry`."""

    enable_plugins: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Admission plugins that are enabled in addition to the default ones. The order in this list does not "
            "matter, because the server always calls plugins in Kubernetes' order.",
            flag="--enable-admission-plugins",
            metavar="LIST",
        ),
    ] = ()
    disable_plugins: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Default admission plugins that are disabled.",
            flag="--disable-admission-plugins",
            metavar="LIST",
        ),
    ] = ()
    control_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the configuration of admission plugins (YAML or JSON, AdmissionConfiguration of "
            "apiserver.config.k8s.io/v1). Empty: the plugins have Kubernetes' default configuration.",
            flag="--admission-control-config-file",
            metavar="FILE",
        ),
    ] = ""
    default_not_ready_toleration_seconds: Annotated[
        int,
        whole(0),
        Setting(
            "Seconds for which a pod stays on a node that is not ready, unless the pod sets its own toleration.",
            flag="--default-not-ready-toleration-seconds",
            metavar="NUMBER",
        ),
    ] = 300
    default_unreachable_toleration_seconds: Annotated[
        int,
        whole(0),
        Setting(
            "Seconds for which a pod stays on a node that is unreachable, unless the pod sets its own toleration.",
            flag="--default-unreachable-toleration-seconds",
            metavar="NUMBER",
        ),
    ] = 300
    allow_privileged: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether containers may be privileged, if the plugin PodSecurity allows it. kube-apiserver's "
            "default is false.",
            flag="--allow-privileged",
            metavar="BOOL",
        ),
    ] = True
