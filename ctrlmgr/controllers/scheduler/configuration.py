"""Reads a KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`), the configuration file of kube-scheduler.

Guarantees: the file is checked with kube-scheduler's rules and messages. A field that the scheduler does not support is
also an error, so that no part of a configuration is silently ignored. Only the following fields, which concern
kube-scheduler's process, have no effect: `clientConnection`, `leaderElection`, `parallelism`, `enableProfiling`,
`enableContentionProfiling` and `delayCacheUntilActive`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any, Final

import msgspec

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, required
from ctrlmgr.controllers.scheduler.extender_calls import ExtenderSettings
from ctrlmgr.controllers.scheduler.extender_configuration import (
    ExtenderFields,
    extender_settings,
    validate_extenders,
)
from ctrlmgr.controllers.scheduler.plugin_arguments import ARGUMENTS
from ctrlmgr.controllers.scheduler.profile_plugins import Plugins, resolved
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import SettingsError
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins
from ctrlmgr.scheduling.declared_features import PLUGIN as FEATURES
from ctrlmgr.scheduling.profile import DEFAULT, PREEMPTION, Profile
from ctrlmgr.settings.configuration_files import Document, read_document

_VERSIONS: Final = ("kubescheduler.config.k8s.io/v1",)


class _PluginConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    args: dict[str, Any] = {}


class _Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[_PluginConfig, ...] = ()


class _Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    profiles: tuple[_Profile, ...] = ()
    extenders: tuple[ExtenderFields, ...] = ()
    percentage_of_nodes_to_score: int | None = None
    parallelism: int = 16
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    client_connection: dict[str, Any] = {}
    leader_election: dict[str, Any] = {}
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False


@dataclass(frozen=True)
class Configuration:
    """A valid configuration of the scheduler."""

    profiles: tuple[Profile, ...] = (DEFAULT,)
    first_backoff: int = 1
    longest_backoff: int = 10
    """The shortest and the longest time that a pod waits after a failed attempt, in seconds."""
    extenders: tuple[ExtenderSettings, ...] = ()
    """The extenders; ignorable extenders are last."""


def configured(file: str, scheduler_name: str, plugins: SchedulerPlugins) -> Configuration:
    """Return the configuration in a file, with the plugins of apps.

    If `file` is "", the configuration contains the default profile for `scheduler_name`.

    Raises `SettingsError`.
    """
    found = read_configuration(File(file).expanduser()) if file else Configuration((Profile(scheduler_name),))
    return replace(found, profiles=tuple(_gated(each).with_plugins(plugins) for each in found.profiles))


def _gated(profile: Profile) -> Profile:
    """Return a profile without the plugin NodeDeclaredFeatures if the plugin's feature gate is off."""
    if is_on(FEATURES):
        return profile
    return replace(profile, filters=profile.filters - {FEATURES})


def read_configuration(file: File) -> Configuration:
    """Read a configuration; raises `SettingsError`, with the line of the problem or with Kubernetes' messages."""
    document = read_document(file)
    given = document.read("KubeSchedulerConfiguration", _VERSIONS, _Configuration)
    if not given.profiles:
        given = msgspec.structs.replace(given, profiles=(_Profile(),))
    if len(given.profiles) == 1 and given.profiles[0].scheduler_name is None:
        only = msgspec.structs.replace(given.profiles[0], scheduler_name=DEFAULT.scheduler_name)
        given = msgspec.structs.replace(given, profiles=(only,))
    errors: list[FieldError] = [*_general(given)]
    profiles = tuple(_profile(document, given, index, errors) for index in range(len(given.profiles)))
    if errors:
        messages = [f"{each.field}: {each.message}" for each in errors]
        raise SettingsError(f"{file}: {messages[0] if len(messages) == 1 else '[' + ', '.join(messages) + ']'}")
    ignored = frozenset(
        each.name for one in given.extenders for each in one.managed_resources if each.ignored_by_scheduler
    )
    if ignored:
        profiles = tuple(replace(each, ignored_resources=ignored) for each in profiles)
    seconds = given.pod_initial_backoff_seconds, given.pod_max_backoff_seconds
    return Configuration(profiles, *seconds, _extenders(document, given.extenders))


def _extenders(document: Document, given: Sequence[ExtenderFields]) -> tuple[ExtenderSettings, ...]:
    found = []
    for index, each in enumerate(given):
        try:
            found.append(extender_settings(each, document.file.parent))
        except (ValueError, OSError) as error:
            raise document.refuse(f"extender {each.url_prefix}: {error}", "extenders", index) from error
    return tuple(sorted(found, key=lambda each: each.is_ignorable))


def _general(given: _Configuration) -> Iterator[FieldError]:
    if given.parallelism <= 0:
        yield invalid(Path("parallelism"), given.parallelism, "should be an integer value greater than zero")
    names = [each.scheduler_name for each in given.profiles]
    for index, name in enumerate(names):
        at = Path("profiles").at(index).child("schedulerName")
        if not name:
            yield required(at)
        if name in names[:index]:
            yield duplicate(at, Path("profiles").at(names.index(name)).child("schedulerName"))
    yield from _percentage(given.percentage_of_nodes_to_score, Path("percentageOfNodesToScore"))
    first, longest = given.pod_initial_backoff_seconds, given.pod_max_backoff_seconds
    if first <= 0:
        yield invalid(Path("podInitialBackoffSeconds"), first, "must be greater than 0")
    if longest < first:
        problem = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid(Path("podMaxBackoffSeconds"), longest, problem)
    yield from validate_extenders(given.extenders, Path("extenders"))


def _percentage(value: int | None, path: Path) -> Iterator[FieldError]:
    if value is not None and not 0 <= value <= 100:
        yield invalid(path, value, "not in valid range [0-100]")


def _profile(document: Document, given: _Configuration, index: int, errors: list[FieldError]) -> Profile:
    """Return a profile; the function adds the errors in the profile to `errors`."""
    own, path = given.profiles[index], Path("profiles").at(index)
    errors += _percentage(own.percentage_of_nodes_to_score, path.child("percentageOfNodesToScore"))
    percentages = (own.percentage_of_nodes_to_score, given.percentage_of_nodes_to_score, 0)
    name = own.scheduler_name or ""
    try:
        plugins = resolved(own.plugins, name)
    except ValueError as error:
        problem = f'initializing profiles: creating profile for scheduler name "{name}": {error}'
        raise document.refuse(problem, "profiles", index) from error
    profile = Profile(
        scheduler_name=name,
        filters=plugins.filters,
        weights=plugins.weights,
        preempts=PREEMPTION in plugins.post,
        deallocates="DynamicResources" in plugins.post,
        percentage=next(each for each in percentages if each is not None),
    )
    for number, each in enumerate(own.plugin_config):
        at = path.child("pluginConfig").at(number)
        if each.name in [one.name for one in own.plugin_config[:number]]:
            errors.append(duplicate(at, each.name))
        profile = _with_arguments(document, each, profile, at, errors)
    return replace(profile, scheduler_name=name)


def _with_arguments(
    document: Document, given: _PluginConfig, profile: Profile, path: Path, errors: list[FieldError]
) -> Profile:
    known = ARGUMENTS.get(given.name)
    if known is None:
        raise document.refuse(f'the plugin "{given.name}" has no arguments', "profiles")
    kind, apply = known
    args = document.converted(given.args, kind)
    if args.kind not in ("", f"{given.name}Args"):
        errors.append(invalid(path.child("args"), args.kind, "has to match plugin args"))
        return profile
    changed, found = apply(args, path.child("args"), profile)
    errors += found
    return changed
