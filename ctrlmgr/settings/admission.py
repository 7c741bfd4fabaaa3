"""The settings of admission, under kube-apiserver's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import NAMES, SWITCH, TEXT, whole


@dataclass(frozen=True, kw_only=True)
class AdmissionSettings:
    """The admission plugins for writes, and their configuration; see `ctrlmgr.admission.registry`."""

    enable_plugins: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Admission plugins that are on besides those that are on by default. Their order here does not matter: "
            "they are called in Kubernetes' order.",
            flag="--enable-admission-plugins",
            metavar="LIST",
        ),
    ] = ()
    disable_plugins: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Admission plugins that are off, though they are on by default.",
            flag="--disable-admission-plugins",
            metavar="LIST",
        ),
    ] = ()
    control_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A file (YAML or JSON, AdmissionConfiguration of apiserver.config.k8s.io/v1) that says how admission "
            "plugins are configured. Empty: as Kubernetes has them by default.",
            flag="--admission-control-config-file",
            metavar="FILE",
        ),
    ] = ""
    default_not_ready_toleration_seconds: Annotated[
        int,
        whole(0),
        Setting(
            "For how many seconds pods that do not say so themselves stay on a node that is not ready.",
            flag="--default-not-ready-toleration-seconds",
            metavar="NUMBER",
        ),
    ] = 300
    default_unreachable_toleration_seconds: Annotated[
        int,
        whole(0),
        Setting(
            "For how many seconds pods that do not say so themselves stay on a node that cannot be reached.",
            flag="--default-unreachable-toleration-seconds",
            metavar="NUMBER",
        ),
    ] = 300
    allow_privileged: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether containers may be privileged, where PodSecurity has nothing against it. kube-apiserver has to be "
            "told that they may.",
            flag="--allow-privileged",
            metavar="BOOL",
        ),
    ] = True
