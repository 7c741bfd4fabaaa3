"""The settings of admission, under kube-apiserver's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import NAMES, SWITCH, TEXT, whole


@dataclass(frozen=True, kw_only=True)
class AdmissionSettings:
    """The admission plugins for writes, and their configuration; see `ctrlmgr.admission.plugin_registry`."""

    enable_plugins: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Admission plugins that are enabled in addition to the default ones. Their order here does not "
            "matter: the server calls plugins in Kubernetes' order.",
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
            "A file (YAML or JSON, AdmissionConfiguration of apiserver.config.k8s.io/v1) that says how admission "
            "plugins are configured. Empty: Kubernetes' defaults.",
            flag="--admission-control-config-file",
            metavar="FILE",
        ),
    ] = ""
    default_not_ready_toleration_seconds: Annotated[
        int,
        whole(0),
        Setting(
            "Seconds for which pods without their own toleration stay on a node that is not ready.",
            flag="--default-not-ready-toleration-seconds",
            metavar="NUMBER",
        ),
    ] = 300
    default_unreachable_toleration_seconds: Annotated[
        int,
        whole(0),
        Setting(
            "Seconds for which pods without their own toleration stay on a node that is unreachable.",
            flag="--default-unreachable-toleration-seconds",
            metavar="NUMBER",
        ),
    ] = 300
    allow_privileged: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether containers may be privileged if PodSecurity allows it. The default of kube-apiserver is false.",
            flag="--allow-privileged",
            metavar="BOOL",
        ),
    ] = True
