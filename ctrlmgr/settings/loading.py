"""Merges command-line flags, environment variables and a TOML file into `Settings`."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_type_hints

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.sections import Retention, Settings
from ctrlmgr.settings.setting_declaration import Declaration, declarations_of, declared
from ctrlmgr.settings.setting_types import DURATION, Kind, format_duration

_OF_A_SERVICE = re.compile(r"CTRLMGR_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)")
"""The environment variables that Kubernetes sets in pods if a Service has the name ctrlmgr."""
_STATES = "XDG_STATE_HOME"
_NONE: Final[Mapping[str, FlagValue]] = MappingProxyType({})


SWITCHES = {
    "server.role": {
        "--api-only": "Serve the API, and leave the controllers to other processes.",
        "--controllers-only": "Be a candidate to run the controllers, and serve only health, metrics and settings.",
    }
}
"""Settings with values that have flags of their own: for each setting's dotted key, these flags with their help."""


class Loaded(NamedTuple):
    """The settings, and the source of each setting.

    `origins` maps the dotted key of a setting (such as `log.level`) to its source: `default`, a file, a variable or a
    flag.
    """

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    """Warnings for the user about settings that were given by a former name."""

    def is_default(self, key: str) -> bool:
        """Return whether a setting has its default, because no flag, no environment variable and no file sets it."""
        return self.origins[key] in ("default", f"environment {_STATES}")


class FlagValue(NamedTuple):
    """The value of a setting that the user gave by a flag of another name."""

    value: str
    flag: str


class _Raw(NamedTuple):
    value: Any
    origin: str
    warning: str = ""


def declarations() -> Mapping[str, Declaration]:
    """Return every setting by its dotted key, in the order of `settings.toml`."""
    return _in_order(tuple(declared()))


@cache
def _in_order(controllers: tuple[tuple[str, type[Any]], ...]) -> Mapping[str, Declaration]:
    """Return the settings of `Settings` and of the given settings classes, in order.

    The result is cached, because this function is called often.
    """
    found = dict(declarations_of(Settings))
    for section, options in controllers:
        found |= {
            f"{section}.{key}": it._replace(key=f"{section}.{key}") for key, it in declarations_of(options).items()
        }
    sections = list(dict.fromkeys(key.rpartition(".")[0] for key in found))
    return {key: found[key] for key in sorted(found, key=lambda key: sections.index(key.rpartition(".")[0]))}


def flags() -> dict[str, str]:
    """Return the command-line flag of each setting, by dotted key."""
    return {key: each.setting.flag for key, each in declarations().items() if each.setting.flag}


def keys() -> list[str]:
    """Return the dotted keys of all settings, in the order of `settings.toml`."""
    return list(declarations())


def variable(key: str) -> str:
    """Return the name of the environment variable for a key: `CTRLMGR_LOG_LEVEL` for `log.level`."""
    return "CTRLMGR_" + key.replace(".", "_").upper()


def value_of(settings: Settings, key: str) -> Any:
    """Return the declaration of a setting, given its dotted key."""
    section, _, name = key.rpartition(".")
    for place, options in declared():
        if place == section and name in declarations_of(options):
            return getattr(settings.of(options), name)
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def plain_value(settings: Settings, key: str) -> Any:
    """Return a setting's value as TOML and JSON represent it: durations as strings, tuples as lists."""
    return _plain(declarations()[key].kind, value_of(settings, key))


def plain_default(declaration: Declaration) -> Any:
    """Return a setting's default as TOML and JSON represent it."""
    return _plain(declaration.kind, declaration.default)


def _plain(kind: Kind, value: Any) -> Any:
    if kind is DURATION:
        return format_duration(value)
    if isinstance(value, Mapping):
        return {resource: _plain_retention(rule) for resource, rule in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _plain_retention(rule: Retention) -> dict[str, Any]:
    return {**asdict(rule), "keep_for": format_duration(rule.keep_for)}


def load(
    given: Mapping[str, Any],
    environment: Mapping[str, str],
    file: Path | None = None,
    *,
    translated: Mapping[str, FlagValue] = _NONE,
) -> Loaded:
    """Merge and validate flags, environment variables and the settings file.

    `given` contains the values of flags by dotted key, with None for an absent flag. `translated` are the values of
    flags with other names; such a value applies if the setting's own flag is absent. If `file` is not given and the
    variable `CTRLMGR_SETTINGS` is set, the function reads the file that this variable names. Raises `SettingsError` if
    a key or a value is invalid.
    """
    if file is None and environment.get("CTRLMGR_SETTINGS"):
        file = Path(environment["CTRLMGR_SETTINGS"])
    known = flags()
    raw = {
        **_from_desktop(environment),
        **_renamed(_from_file(file) if file else {}),
        **_renamed(_from_environment(environment)),
        **{key: _Raw(value, flag) for key, (value, flag) in translated.items()},
        **{key: _Raw(value, known.get(key, f"--{value}")) for key, value in given.items() if value is not None},
    }
    origins = {key: raw[key].origin if key in raw else "default" for key in keys()}
    others = {options: _build(options, raw, f"{section}.") for section, options in declared()}
    settings = dataclasses.replace(_build(Settings, raw), declared=others)
    return Loaded(settings, origins, tuple(dict.fromkeys(each.warning for each in raw.values() if each.warning)))


def _from_file(file: Path) -> dict[str, _Raw]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: the settings file cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from error
    return {key: _Raw(value, str(file)) for key, value in _flatten(table, "", str(file))}


def _flatten(table: Mapping[str, Any], prefix: str, origin: str) -> Iterable[tuple[str, Any]]:
    known, former = keys(), _former()
    for name, value in table.items():
        key = prefix + name
        if key in known or key in former:
            yield key, value
        elif isinstance(value, dict) and any(other.startswith(key + ".") for other in (*known, *former)):
            yield from _flatten(value, key + ".", origin)
        else:
            raise SettingsError(f"{origin}: there is no setting {key!r}{_remedy(key, known)}")


def _renamed(raw: Mapping[str, _Raw]) -> dict[str, _Raw]:
    """Replace former keys by the current keys; if both keys are given, the value of the current key applies."""
    former = _former()
    renamed = {
        former[key]: each._replace(warning=f"{each.origin}: {key} is called {former[key]} now")
        for key, each in raw.items()
        if key in former
    }
    return renamed | {key: each for key, each in raw.items() if key not in former}


def _former() -> dict[str, str]:
    """Return a mapping from the former keys of settings to their current keys."""
    return {each.setting.formerly: key for key, each in declarations().items() if each.setting.formerly}


def _from_environment(environment: Mapping[str, str]) -> dict[str, _Raw]:
    """Return the values of environment variables that name a setting; raises `SettingsError` for a misspelled name.

    Other variables that begin with CTRLMGR_ are ignored, for example the variables that Kubernetes sets in pods for a
    Service.
    """
    variables = {variable(key): key for key in (*_former(), *keys())}
    for name in environment.keys() - variables.keys() - {"CTRLMGR_SETTINGS"}:
        if name.startswith("CTRLMGR_") and not _OF_A_SERVICE.match(name) and (hint := _did_you_mean(name, variables)):
            raise SettingsError(f"environment: {name} is not a setting's variable{hint}")
    return {
        key: _Raw(environment[name], f"environment {name}") for name, key in variables.items() if name in environment
    }


def _from_desktop(environment: Mapping[str, str]) -> dict[str, _Raw]:
    """Return the data directory below `$XDG_STATE_HOME`, if that variable is set (XDG Base Directory)."""
    states = environment.get(_STATES, "")
    is_valid = states.startswith("/")  # the specification says that relative paths must be ignored
    return {"data_dir": _Raw(f"{states.rstrip('/')}/ctrlmgr", f"environment {_STATES}")} if is_valid else {}


def _remedy(key: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown key: the setting that the user probably meant.

    The suggested setting has a similar name, or the same name in another section.
    """
    name = key.rpartition(".")[2]
    elsewhere = [each for each in known if each.rpartition(".")[2] == name]
    if len(elsewhere) == 1:
        return f"; did you mean {elsewhere[0]!r}?"
    return _did_you_mean(key, known) or "; `ctrlmgr settings` lists all"


def _did_you_mean(word: str, words: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(words), n=1, cutoff=0.75)
    return f"; did you mean {close[0]!r}?" if close else ""


def _build(section: type[Any], raw: Mapping[str, _Raw], prefix: str = "") -> Any:
    hints = get_type_hints(section)
    values = {}
    for name in (each.name for each in fields(section) if each.name != "declared"):
        key = prefix + name
        if is_dataclass(hints[name]):
            values[name] = _build(hints[name], raw, key + ".")
        elif key in raw:
            values[name] = _read(key, raw[key])
    return section(**values)


def _read(key: str, raw: _Raw) -> Any:
    kind = declarations()[key].kind
    try:
        return kind.read(raw.value)
    except (ValueError, TypeError) as error:
        place = raw.origin if raw.origin.startswith(("-", "environment")) else f"{raw.origin}: {key}"
        raise SettingsError(f"{place} is {raw.value!r}; it must be {kind.expects}") from error
