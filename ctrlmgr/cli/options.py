"""Contains code that commands share: options, settings, access to the log, and error output."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctrlmgr.cli import completion
from ctrlmgr.cli.sectioned_help import SettingOption
from ctrlmgr.controllers import registry as _controllers  # noqa: F401  # declares the controllers' options as settings
from ctrlmgr.encryption import providers_from
from ctrlmgr.errors import SchemaOutdated, SettingsError
from ctrlmgr.settings import (
    LIST,
    NAMES,
    SWITCHES,
    TEXTS,
    Loaded,
    Settings,
    declarations,
    flags,
    keys,
    load,
    plain_default,
)
from ctrlmgr.settings.kubernetes_flags.controller_manager_configuration import KIND, read_configuration
from ctrlmgr.settings.kubernetes_flags.translated_flags import (
    API_SERVER_PORT,
    CONTROLLER_MANAGER_PORT,
    NOTHING,
    Translation,
    meaning_texts,
    translate,
)
from ctrlmgr.settings.kubernetes_flags.upstream_flags import SECTION_NAMES, SECTIONS
from ctrlmgr.settings.loading import FlagValue

if TYPE_CHECKING:
    from ctrlmgr.api.resource import Resource
    from ctrlmgr.eventlog.sqllog import SQLLog

_FILE = click.Path(dir_okay=False, path_type=Path)
MEMORY = "memory:"
_SEPARATORS = {LIST: ",", NAMES: ",", TEXTS: ";"}
"""The separator between the elements of a list, for each setting whose value is a list."""
_OF_KUBERNETES = "kubernetes_flag_"
_CONFIGURATION = "configuration_file"
_OWN_OPTIONS: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("--kubeconfig", "kubeconfig", Path),
    ("--use-service-account-credentials", "as_accounts", lambda text: text == "true"),
)
"""The flags of kube-controller-manager that are not settings but options of `serve`, with their parameters and types.
"""

_SHORT = {"--v": ("-v",)}
"""The short names of flags of Kubernetes' programs."""

_REMOVED = "Flags that Kubernetes has removed"
DATABASE = ("database.url", "data_dir")
ENCRYPTED_DATABASE = (*DATABASE, "database.encryption_provider_config")
LOG = ("log.level", "log.format")
CONTROLLERS = tuple(key for key in flags() if key.startswith("controllers."))
LEADER_ELECTION = tuple(key for key in flags() if key.startswith("leader_election."))


def takes_settings(*keys: str, translates: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--settings` and the flags of these settings to a command.

    The command gets the `Loaded` settings as its first argument. If `translates` is true, the command also accepts the
    flags of Kubernetes' programs.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(settings_file: Path | None, **arguments: Any) -> Any:
            given = {key: arguments.pop(_parameter(key)) for key in keys}
            translation = _translation(arguments) if translates else NOTHING
            arguments.pop(_CONFIGURATION, None)
            arguments = {name: value for name, value in arguments.items() if not name.startswith(_OF_KUBERNETES)}
            return function(_loaded(given, settings_file, translation), **arguments)

        decorated: Callable[..., Any] = command
        for flag, text in reversed([*meaning_texts()]) if translates else ():
            decorated = _kubernetes_option(flag, text)(decorated)
        decorated = _configuration_option(decorated) if translates else decorated
        for key in reversed(keys):
            decorated = (_switches if key in SWITCHES else _option)(key)(decorated)
        text = "The settings file (TOML); by default the file that CTRLMGR_SETTINGS names."
        return click.option("--settings", "settings_file", type=_FILE, metavar="FILE", help=text)(decorated)

    return decorate


def _kubernetes_option(flag: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a flag of Kubernetes' programs to a command.

    The value of the flag is optional, as for boolean flags in Go.
    """
    more: dict[str, Any] = {"is_flag": False, "flag_value": "true", "metavar": "VALUE"}
    section = section_title(flag) or _REMOVED
    names = (*_SHORT.get(flag, ()), flag, _kubernetes_parameter(flag))
    return click.option(*names, cls=SettingOption, section=section, help=text, **more)


def section_title(flag: str) -> str:
    """Return the title of the section in which Kubernetes' programs describe a flag; empty if they lack the flag."""
    section = SECTIONS.get(flag, "")
    return _title(section) if section else ""


def section_titles() -> list[str]:
    """Return the titles of the sections of Kubernetes' programs in their order, and the title of the removed flags."""
    return [*map(_title, SECTION_NAMES), _REMOVED]


def _title(section: str) -> str:
    return f"{section[0].upper()}{section[1:]} flags"


def _given_kubernetes_flags(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the flags of Kubernetes' programs that the user gave to a command, with their values."""
    names = {_kubernetes_parameter(flag): flag for flag, _ in meaning_texts()}
    return {names[name]: value for name, value in parameters.items() if name in names and value is not None}


def _configuration_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` to a command."""
    text = f"A file with values of flags of kube-controller-manager (YAML or JSON, {KIND}). A flag overrides the file."
    return click.option("--config", _CONFIGURATION, type=_FILE, metavar="FILE", help=text)(function)


def _configured(arguments: dict[str, Any]) -> Translation:
    """Translate the file of `--config`; values for options that are not settings are added to `arguments`."""
    file: Path | None = arguments.get(_CONFIGURATION)
    values = read_configuration(file) if file is not None else {}
    for flag, name, read in _OWN_OPTIONS:
        if flag in values and arguments.get(name) is None:
            arguments[name] = read(values[flag])
    owned = {flag for flag, *_ in _OWN_OPTIONS}
    settings = {flag: key for key, flag in flags().items()}
    rest = translate({flag: text for flag, text in values.items() if flag not in settings and flag not in owned})
    own = {settings[flag]: FlagValue(text, str(file)) for flag, text in values.items() if flag in settings}
    return Translation({**rest.values, **own}, rest.warnings)


def _translation(arguments: dict[str, Any]) -> Translation:
    """Translate the file of `--config` and the flags of Kubernetes' programs that the user gave to `serve`.

    A process that runs only controllers has the default port of kube-controller-manager.
    """
    configured = _configured(arguments)
    alone = arguments.get("kubeconfig") or arguments.get("master")
    port = CONTROLLER_MANAGER_PORT if alone else API_SERVER_PORT
    given = translate(_given_kubernetes_flags(arguments), port)
    return Translation({**configured.values, **given.values}, (*configured.warnings, *given.warnings))


def _kubernetes_parameter(flag: str) -> str:
    return _OF_KUBERNETES + flag.removeprefix("--").replace("-", "_")


def _loaded(given: Mapping[str, Any], file: Path | None, translation: Translation) -> Loaded:
    loaded = load(given, os.environ, file, translated=translation.values)
    for warning in (*translation.warnings, *loaded.warnings):
        click.echo(f"warning: {warning}", err=True)
    return loaded


def reader() -> Callable[[], Settings]:
    """Return a function that reads the current command's settings again from the settings file and the environment."""
    parameters = dict(click.get_current_context().params)
    file = parameters.pop("settings_file", None)
    given = {key: parameters[_parameter(key)] for key in keys() if _parameter(key) in parameters}
    translated = _translation(dict(parameters)).values
    return lambda: load(given, os.environ, file, translated=translated).settings


def given_flags(*keys: str) -> list[str]:
    """Return those flags of the current command that set the given settings.

    The caller can pass these flags to another process.
    """
    parameters = click.get_current_context().params
    file = parameters.get("settings_file")
    pairs = [("--settings", str(file.absolute()))] if file else []
    given = ((flag, parameters[_parameter(key)]) for key, flag in flags().items() if key in keys)
    pairs += [(flag, value) for flag, value in given if value is not None]
    return [word for pair in pairs for word in pair]


def _option(key: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the flag of a setting to a command.

    A boolean flag needs no value; a flag with a list as its value may be repeated.
    """
    declared = declarations()[key]
    setting = declared.setting
    more: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if setting.metavar == "BOOL" else {}
    if separator := _SEPARATORS.get(declared.kind):
        more = {"multiple": True, "callback": lambda context, parameter, values: separator.join(values) or None}
    if key == "controllers.enabled":
        more["shell_complete"] = completion.controllers
    section = key.rpartition(".")[0]
    title = section_title(setting.flag) or (f"[{section}]" if section else "")
    return click.option(
        setting.flag,
        _parameter(key),
        cls=SettingOption,
        section=title,
        default_text=_default_text(plain_default(declared)),
        metavar=setting.metavar,
        help=setting.help,
        **more,
    )


def _default_text(default: object) -> str:
    """Return the text of a default as in Kubernetes' programs: empty for a zero value, a string in quotes."""
    if isinstance(default, list):
        return f"(default {','.join(map(str, default))})" if default else ""
    if isinstance(default, bool):
        return "(default true)" if default else ""
    if isinstance(default, str) and not default[:1].isdecimal():
        return f'(default "{default}")' if default else ""
    return f"(default {default})" if default not in (0, "0s") else ""


def _switches(key: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds several flags to a command; each flag stands for one value of a setting."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for flag, text in reversed(SWITCHES[key].items()):
            function = click.option(flag, _parameter(key), flag_value=flag.removeprefix("--"), help=text)(function)
        return function

    return decorate


def _parameter(key: str) -> str:
    return "flag_" + key.replace(".", "_")


def output_option(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the option `-o`, which accepts these `formats`, to a command; the first format is the default."""
    text = f"The output format: {', '.join(formats[:-1])} or {formats[-1]}."
    return click.option("-o", "--output", type=click.Choice(formats), default=formats[0], help=text)


class ResourceName(click.ParamType["Resource"]):
    """A parameter type for resources in kubectl's notation: `pods`, `leases.coordination.k8s.io`."""

    name = "resource"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Resource:
        """Parse a resource; fail with a usage error if the argument is not a resource."""
        from ctrlmgr.api.resource import Resource

        if isinstance(value, Resource):
            return value
        if not value or value != value.lower() or "/" in value:
            self.fail(f"{value!r} is not a resource; write plural or plural.group: pods, leases.coordination.k8s.io")
        return Resource.parse(value)


class Duration(click.ParamType[float]):
    """A parameter type for durations such as `15s` or `1h30m`, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a duration; fail with a usage error if the argument is not a duration."""
        from ctrlmgr.settings import parse_duration

        try:
            return value if isinstance(value, float) else parse_duration(value)
        except ValueError:
            self.fail(f"{value!r} is not a duration; write 15s, 10m or 1h30m")


def configure_logging(settings: Settings) -> None:
    """Configure the logging of this process with the settings `[log]`."""
    from ctrlmgr import logging

    logging.configure(level=settings.log.level, format=settings.log.format, modules=settings.log.module_levels)


@contextmanager
def opened_log(loaded: Loaded, *, anchor: Path | None = None) -> Iterator[SQLLog]:
    """Open the log that the settings name, and close the log at the end of the context.

    The command does not create a missing database. Raises `SettingsError` if the log is in memory, because only the
    process of the log can read it. Raises `SchemaOutdated` if the database does not exist or has the schema of another
    version. Raises `LogRolledBack` if the log is older than the anchor, which by default is the anchor that the
    settings name.
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog import open_log
    from ctrlmgr.eventlog.anchor_signing import Sealing
    from ctrlmgr.eventlog.memory_log import MemoryEventLog

    settings = loaded.settings
    configure_logging(settings)
    _require_file(settings.database_url)
    anchor = anchor or settings.anchor_path
    if anchor:
        anchor.parent.mkdir(parents=True, exist_ok=True)
    key = settings.anchor_key_path
    sealing = Sealing(key) if key else None
    log = open_log(
        settings.database_url,
        clock=SystemClock(),
        random=random.SystemRandom(),
        anchor=anchor,
        sealing=sealing,
        providers=providers_from(settings.database.encryption_provider_config),
    )
    if isinstance(log, MemoryEventLog):
        raise SettingsError(
            "memory: only the process that serves this log can read it; choose another log with --database"
        )
    try:
        yield log
    finally:
        log.close()


@contextmanager
def opened_for_reading(loaded: Loaded) -> Iterator[SQLLog]:
    """Open the log that the settings name, for reading only.

    Neither the log nor its anchor is written, and the anchor is not checked. Raises `SettingsError` if the log is in
    memory, and `SchemaOutdated` if no log exists.
    """
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.eventlog.opening import open_log_for_reading

    settings = loaded.settings
    configure_logging(settings)
    _require_file(settings.database_url)
    log = open_log_for_reading(
        settings.database_url,
        clock=SystemClock(),
        random=random.SystemRandom(),
        providers=providers_from(settings.database.encryption_provider_config),
    )
    try:
        yield log
    finally:
        log.close()


def _require_file(url: str) -> None:
    """Raise `SchemaOutdated` if the SQLite file is missing, because SQLite would create an empty database."""
    scheme, _, path = url.partition(":///")
    if scheme == "sqlite" and not Path(path).exists():
        raise SchemaOutdated(
            f"there is no database at {path}; `ctrlmgr serve` or `ctrlmgr migrate` creates one, "
            "--database chooses another"
        )
