"""Finds apps by name: `module:attribute`, a file such as `website.py`, or a name in an installed package.

Guarantees: if an app cannot be loaded, one `SettingsError` is raised. Its message has one line with the reason and the
location.
"""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.app import App
from ctrlmgr.framework.module_files import import_file, search
from ctrlmgr.framework.options_checks import remedy
from ctrlmgr.framework.typed_kinds import Kind

GROUP: Final = "ctrlmgr.apps"
"""The entry point group with which packages declare apps."""

_PACKAGE: Final = Path(__file__).parents[1]
_STANDARD: Final = Path(traceback.__file__).parent
"""The folders of Python's standard library; installed packages may be in a subfolder of one of these folders."""


def load_apps(names: Iterable[str], *, origin: str = "--app") -> list[App]:
    """Return the apps with these names, without duplicates; raises `SettingsError` if an app cannot be loaded."""
    found: dict[int, App] = {}
    for name in names:
        app = load_app(name, origin=origin)
        found.setdefault(id(app), app)
    return [*found.values()]


def load_app(name: str, *, origin: str = "--app") -> App:
    """Return the app with this name; its module may also be in the working directory.

    Raises `SettingsError` if the app cannot be loaded.
    """
    place = name if ":" in name or _is_file(name) else _installed(name, origin)
    loaded = load(place, origin=origin)
    if not isinstance(loaded, App):
        raise SettingsError(f"{origin} {name}: {place} is {_what(loaded)}, not a ctrlmgr.App")
    return loaded


def load_kinds(places: Iterable[str], *, origin: str) -> list[App]:
    """Return apps for the classes of kinds and the apps at these places.

    Each place names a class of a kind or an app. Raises `SettingsError` if a place names neither.
    """
    found = []
    for place in places:
        loaded = load(place, origin=origin)
        if isinstance(loaded, type) and issubclass(loaded, Kind):
            try:
                loaded = App("kinds", kinds=[loaded])
            except TypeError as error:
                raise SettingsError(f"{origin} {place}: {error}") from error
        if not isinstance(loaded, App):
            raise SettingsError(f"{origin} {place} is {_what(loaded)}, not a ctrlmgr.Kind or a ctrlmgr.App")
        if not loaded.kinds:
            raise SettingsError(f"{origin} {place} has no custom kind to define")
        found.append(loaded)
    return found


def load(place: str, *, origin: str) -> Any:
    """Return the value that `module:attribute` or `file.py:attribute` names; for `file.py`, the app in that file.

    Raises `SettingsError`.
    """
    module_name, _, attribute = place.partition(":")
    loaded: Any = _imported(module_name, place, origin)
    if not attribute and _is_file(module_name):
        return _only_app(loaded, place, origin)
    try:
        for part in attribute.split("."):
            loaded = getattr(loaded, part)
    except AttributeError:
        raise SettingsError(f"{origin} {place}: module {module_name} has no {attribute!r}{_apps_of(loaded)}") from None
    return loaded


def _is_file(name: str) -> bool:
    return name.endswith(".py")


def _imported(module_name: str, place: str, origin: str) -> ModuleType:
    if not module_name.startswith("."):
        search("")
    file = Path(module_name if _is_file(module_name) else f"{module_name}.py")
    if _is_file(module_name) and not file.is_file():
        raise SettingsError(f"{origin} {place}: there is no file {module_name}")
    try:
        return import_file(file) if file.is_file() else importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise SettingsError(f"{origin} {place}: there is no module {error.name}") from error
        raise SettingsError(f"{origin} {place}: {module_name} cannot be imported: {_error_text(error)}") from error
    except (Exception, SystemExit) as error:
        raise SettingsError(f"{origin} {place}: {module_name} cannot be imported: {_error_text(error)}") from error


def _only_app(module: ModuleType, file: str, origin: str) -> App:
    """Return the app in a file: the attribute `app`, or the only app in the file."""
    apps = {name: each for name, each in vars(module).items() if isinstance(each, App)}
    if "app" in apps or len({*map(id, apps.values())}) == 1:
        return apps.get("app") or next(iter(apps.values()))
    if not apps:
        raise SettingsError(f'{origin} {file}: it has no ctrlmgr.App; `app = App("shop")` makes one')
    choices = " or ".join(f"{file}:{name}" for name in apps)
    raise SettingsError(f"{origin} {file}: it has {len(apps)} apps; name one of them: {choices}")


def installed() -> Sequence[str]:
    """Return the names of the apps in installed packages."""
    return sorted({each.name for each in entry_points(group=GROUP)})


def _installed(name: str, origin: str) -> str:
    for each in entry_points(group=GROUP):
        if each.name == name:
            return each.value
    known = ", ".join(installed()) or "none"
    raise SettingsError(
        f"{origin} {name}: no installed package has an app of that name (there are: {known}); "
        "for one in the working directory write `module:app` or `module.py`"
    )


def _error_text(error: BaseException) -> str:
    """Return the exception and, if it was raised in the user's own code, its location."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if _is_users(each.filename)]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, re.error):
        return f"the pattern {error.pattern!r} is no regular expression: {error}{where}"
    hint = "; install it beside ctrlmgr" if isinstance(error, ModuleNotFoundError) else remedy(error)
    return f"{type(error).__name__}: {error}{hint}{where}"


def _apps_of(module: Any) -> str:
    """Return a list of the apps in a module, for an error message."""
    found = (
        [name for name, each in vars(module).items() if isinstance(each, App)] if isinstance(module, ModuleType) else []
    )
    return f"; it has {' and '.join(found)}" if found else '; `app = App("shop")` makes an app'


def _is_users(filename: str) -> bool:
    path = Path(filename)
    is_standard = path.is_relative_to(_STANDARD) and not {"site-packages", "dist-packages"} & {*path.parts}
    return "importlib" not in filename and not is_standard and not path.is_relative_to(_PACKAGE)


def _what(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else f"a {type(value).__name__}"
