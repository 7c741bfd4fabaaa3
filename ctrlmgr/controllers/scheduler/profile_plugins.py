"""Resolves the plugins of a profile: which plugins are enabled at which extension point, and with which weights.

The guarantees are those of kube-scheduler: the plugins that are enabled or disabled at one extension point take
precedence over those of `multiPoint`. The name `*` disables all plugins. Filters always run in the order of the default
profile. Plugins can be chosen only for `multiPoint`, `filter`, `score` and `postFilter`. For the other extension
points, the plugins cannot be replaced: the scheduler sorts its queue by priority, respects scheduling gates, and binds
pods itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.scheduling.profile import FILTERS, PREEMPTION, WEIGHTS

_DEVICES: Final = "DynamicResources"
_POST: Final = (_DEVICES, PREEMPTION)
_SORT, _BIND = "PrioritySort", "DefaultBinder"
_OTHERS: Final = ("SchedulingGates", _SORT, _BIND)
_TYPES: Final = {"filter": "FilterPlugin", "score": "ScorePlugin", "postFilter": "PostFilterPlugin"}
_AT: Final[Mapping[str, Sequence[str]]] = {"filter": FILTERS, "score": (*WEIGHTS,), "postFilter": _POST}
_KNOWN: Final = frozenset([*FILTERS, *WEIGHTS, *_POST, *_OTHERS])


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plugin of a plugin set; a weight of 0 means the default weight."""

    name: str = ""
    weight: int = 0


class PluginSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plugins that are enabled and disabled at an extension point."""

    enabled: tuple[Choice, ...] = ()
    disabled: tuple[Choice, ...] = ()

    @property
    def without(self) -> set[str]:
        """Return the names of the disabled plugins."""
        return {each.name for each in self.disabled}


class Plugins(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugin sets of a profile."""

    multi_point: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()


class Resolved(NamedTuple):
    """The plugins of a profile that are in effect."""

    filters: frozenset[str]
    weights: Mapping[str, int]
    post: frozenset[str]


def resolved(plugins: Plugins, scheduler_name: str) -> Resolved:
    """Return the plugins that are in effect; raises `ValueError` if kube-scheduler would not start with them."""
    everywhere = _everywhere(plugins.multi_point)
    names = [each.name for each in everywhere]
    if _SORT not in names:
        where = f'for profile with scheduler name "{scheduler_name}", but got 0'
        raise ValueError(f"only one queue sort plugin required {where}")
    if _BIND not in names:
        raise ValueError(f'at least one bind plugin is needed for profile with scheduler name "{scheduler_name}"')
    scores = _at("score", plugins.score, everywhere)
    return Resolved(
        frozenset(_at("filter", plugins.filter, everywhere)),
        # Scores are listed in the order of the default profile, regardless of the order of the configuration.
        {name: scores[name] for name in WEIGHTS if name in scores},
        frozenset(_at("postFilter", plugins.post_filter, everywhere)),
    )


def _everywhere(own: PluginSet) -> list[Choice]:
    """Return the plugins that are enabled by `multiPoint`, with their weights."""
    changed = {each.name: each for each in own.enabled}
    defaults = [Choice(name, WEIGHTS.get(name, 0)) for name in sorted(_KNOWN)]
    kept = [] if "*" in own.without else [each for each in defaults if each.name not in own.without]
    found = [changed.get(each.name, each) for each in kept]
    found += [each for each in own.enabled if each not in found]
    seen: set[str] = set()
    for each in found:
        if each.name not in _KNOWN:
            raise ValueError(f'PreEnqueuePlugin "{each.name}" does not exist')
        if each.name in seen:
            raise ValueError(f'plugin "{each.name}" already registered as "FilterPlugin"')
        seen.add(each.name)
    return found


def _at(point: str, own: PluginSet, everywhere: Sequence[Choice]) -> dict[str, int]:
    """Return the plugins that are enabled at an extension point, with their weights."""
    found: dict[str, int] = {}
    for each in own.enabled:
        _check(point, each.name, found)
        found[each.name] = each.weight or 1
    hidden = own.without
    for each in everywhere if "*" not in hidden else ():
        if each.name in _AT[point] and each.name not in hidden:
            found.setdefault(each.name, each.weight or 1)
    return found


def _check(point: str, name: str, found: Mapping[str, int]) -> None:
    if name not in _KNOWN:
        raise ValueError(f'{_TYPES[point]} "{name}" does not exist')
    if name not in _AT[point]:
        raise ValueError(f'plugin "{name}" does not extend {_TYPES[point]} plugin')
    if name in found:
        raise ValueError(f'plugin "{name}" already registered as "{_TYPES[point]}"')
