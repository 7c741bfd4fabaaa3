"""The names of all flags of kube-apiserver and kube-controller-manager, and the sections of these flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctrlmgr.settings.kubernetes_flags import api_server_flags, controller_manager_flags

KUBE_APISERVER: Final = frozenset(flag for flags in api_server_flags.SECTIONS.values() for flag in flags)
"""The flags of kube-apiserver."""

KUBE_CONTROLLER_MANAGER: Final = frozenset(
    flag for flags in controller_manager_flags.SECTIONS.values() for flag in flags
)
"""The flags of kube-controller-manager."""

SECTIONS: Final[Mapping[str, str]] = {
    flag: section
    for sections in (controller_manager_flags.SECTIONS, api_server_flags.SECTIONS)
    for section, flags in sections.items()
    for flag in flags
}
"""The section of each flag of both programs; for a flag of both programs, its section in kube-apiserver."""

SECTION_NAMES: Final = tuple(dict.fromkeys((*api_server_flags.SECTIONS, *controller_manager_flags.SECTIONS)))
"""The names of all sections, first those of kube-apiserver in the order of its help."""
