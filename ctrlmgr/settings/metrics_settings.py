"""The settings that filter the metrics of a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import NAMES, TEXT, TEXTS


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """The settings that leave out metrics, and that limit the values of labels."""

    disabled: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The full names of metrics that /metrics does not contain.",
            flag="--disabled-metrics",
            metavar="NAME,...",
        ),
    ] = ()
    allow_labels: Annotated[
        tuple[str, ...],
        TEXTS,
        Setting(
            "The values that a label of a metric may have, as METRIC,LABEL=VALUE,VALUE. Any other value becomes "
            "`unexpected`, and series that are equal then are added up.",
            flag="--allow-metric-labels",
            metavar="METRIC,LABEL=VALUE,...",
        ),
    ] = ()
    allow_labels_manifest: Annotated[
        str,
        TEXT,
        Setting(
            "A YAML file with the values that labels may have, as METRIC,LABEL: VALUE,VALUE. It excludes allow_labels.",
            flag="--allow-metric-labels-manifest",
            metavar="FILE",
        ),
    ] = ""
    show_hidden_for_version: Annotated[
        str,
        TEXT,
        Setting(
            "The previous minor version of Kubernetes, whose hidden metrics /metrics would contain; ctrlmgr hides no "
            "metrics.",
            flag="--show-hidden-metrics-for-version",
            metavar="VERSION",
        ),
    ] = ""
