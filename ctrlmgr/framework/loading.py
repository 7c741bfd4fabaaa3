"""Finds apps by name: `module:attribute`, or the name of an entry point of an installed package.

Guarantees: whatever is wrong with an app is one `SettingsError`, in one line that says what and where.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from typing import Any, Final

from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.app import App
from ctrlmgr.framework.model import Kind

GROUP: Final = "ctrlmgr.apps"
"""The group of entry points under which packages name their apps."""


def load_apps(names: Iterable[str], *, origin: str = "--app") -> list[App]:
    """Return the apps of these names, each once; raises `SettingsError`."""
    found: dict[int, App] = {}
    for name in names:
        app = load_app(name, origin=origin)
        found.setdefault(id(app), app)
    return [*found.values()]


def load_app(name: str, *, origin: str = "--app") -> App:
    """Return one app; modules are also looked for in the working directory. Raises `SettingsError`."""
    place = name if ":" in name else _installed(name, origin)
    loaded = load(place, origin=origin)
    if not isinstance(loaded, App):
        raise SettingsError(f"{origin} {name}: {place} is {_what(loaded)}, and not a ctrlmgr.App")
    return loaded


def load_kinds(places: Iterable[str], *, origin: str) -> list[App]:
    """Return apps that have the kinds of these places: classes, or apps; raises `SettingsError`."""
    found = []
    for place in places:
        loaded = load(place, origin=origin)
        if isinstance(loaded, type) and issubclass(loaded, Kind):
            try:
                loaded = App("kinds", kinds=[loaded])
            except TypeError as error:
                raise SettingsError(f"{origin} {place}: {error}") from error
        if not isinstance(loaded, App):
            raise SettingsError(f"{origin} {place} is {_what(loaded)}, and neither a ctrlmgr.Kind nor a ctrlmgr.App")
        if not loaded.kinds:
            raise SettingsError(f"{origin} {place} has no kind of its own to define")
        found.append(loaded)
    return found


def load(place: str, *, origin: str) -> Any:
    """Return what `module:attribute` names; raises `SettingsError`."""
    module_name, _, attribute = place.partition(":")
    if "" not in sys.path and not module_name.startswith("."):
        sys.path.insert(0, "")
    try:
        loaded: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise SettingsError(f"{origin} {place}: there is no module {error.name}") from error
        raise SettingsError(f"{origin} {place}: {module_name} cannot be imported: {_told(error)}") from error
    except (Exception, SystemExit) as error:
        raise SettingsError(f"{origin} {place}: {module_name} cannot be imported: {_told(error)}") from error
    try:
        for part in attribute.split("."):
            loaded = getattr(loaded, part)
    except AttributeError:
        raise SettingsError(f"{origin} {place}: module {module_name} has no {attribute!r}") from None
    return loaded


def installed() -> Sequence[str]:
    """Return the names of the apps that installed packages have."""
    return sorted({each.name for each in entry_points(group=GROUP)})


def _installed(name: str, origin: str) -> str:
    for each in entry_points(group=GROUP):
        if each.name == name:
            return each.value
    known = ", ".join(installed()) or "none"
    raise SettingsError(
        f"{origin} {name}: no installed package has an app of that name (there are: {known}); "
        "in the working directory it is `module:app`"
    )


def _told(error: BaseException) -> str:
    """Return what was raised and, in the user's own code, where."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if len(frames) > 1 else ""
    return f"{type(error).__name__}: {error}{where}"


def _what(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else f"a {type(value).__name__}"
