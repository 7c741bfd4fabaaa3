"""The settings of authorization, under kube-apiserver's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import LIST, Kind

MODES: Final = ("Node", "RBAC", "AlwaysAllow", "AlwaysDeny")
"""Who can be asked whether a request may be made."""

_read_list: Callable[[Any], tuple[str, ...]] = LIST.read


def _read_modes(value: Any) -> tuple[str, ...]:
    modes = _read_list(value)
    if not modes or not set(modes) <= set(MODES) or len(set(modes)) != len(modes):
        raise ValueError(value)
    return modes


_MODES = Kind(f'each of them once at most, of {", ".join(MODES)}: a list such as ["Node", "RBAC"]', _read_modes)


@dataclass(frozen=True, kw_only=True)
class AuthorizationSettings:
    """Who decides what users may do."""

    mode: Annotated[
        tuple[str, ...],
        _MODES,
        Setting(
            "Who is asked, in this order, whether a request may be made; the first that allows or denies it "
            'decides. "RBAC": roles and bindings; "Node": what kubelets need; "AlwaysAllow" and "AlwaysDeny" ask '
            "nothing. Members of system:masters may do everything.",
            flag="--authorization-mode",
            metavar="LIST",
        ),
    ] = ("Node", "RBAC")
