"""Creates or updates the CustomResourceDefinitions of an app's kinds, unless stored ones contradict the classes.

Guarantees: a stored CustomResourceDefinition is not changed if it already contains all fields of the derived
CustomResourceDefinition, or if it contradicts the class (`derived_definition.contradiction`). Every other
CustomResourceDefinition is written by server-side apply, because an apply keeps the fields that other field managers
have set.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS, Key
from ctrlmgr.errors import ApiError, SettingsError
from ctrlmgr.framework.app import App
from ctrlmgr.framework.children import says, to_object
from ctrlmgr.framework.class_declaration import Declaration
from ctrlmgr.framework.derived_definition import contradiction, definition_of

MANAGER: Final = "ctrlmgr-app"
"""The field manager of the CustomResourceDefinitions that are installed for an app."""


def changes(apps: Iterable[App], find: Callable[[Key], Object | None]) -> list[Object]:
    """Return the CustomResourceDefinitions to apply so that every kind of these apps is defined.

    `find` returns the stored CustomResourceDefinitions. Raises `SettingsError` if a kind contradicts its stored
    CustomResourceDefinition, or the same kind in another app.
    """
    desired: dict[str, tuple[Declaration, dict[str, Any]]] = {}
    for app in apps:
        for kind in app.kinds:
            name, definition = str(kind.resource), checked_definition(kind)
            other = desired.setdefault(name, (kind, definition))
            if other[0].cls is not kind.cls and (difference := contradiction(other[1], definition)):
                raise SettingsError(f"{kind.where} contradicts {other[0].where}: of {name} {difference}")
    found = []
    for name, (kind, definition) in desired.items():
        stored = find(Key("", name))
        change = definition if stored is None else _change(stored.to_dict(), definition, kind)
        if change is not None:
            found.append(to_object(change, DEFINITIONS))
    return found


def checked_definition(kind: Declaration) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind.

    Raises `SettingsError` if the class is invalid; the message contains the place where the class is declared.
    """
    try:
        return definition_of(kind.cls)
    except TypeError as error:
        raise SettingsError(f"{kind.where}: {error}{_line_of(kind.cls)}") from error


def _line_of(cls: type[Any]) -> str:
    """Return the file and line of a class, in parentheses; empty if the class is not declared in a file."""
    try:
        return f" ({inspect.getsourcefile(cls)}:{inspect.getsourcelines(cls)[1]})"
    except (OSError, TypeError):
        return ""


def _change(stored: dict[str, Any], desired: dict[str, Any], kind: Declaration) -> dict[str, Any] | None:
    if difference := contradiction(stored, desired):
        name = desired["metadata"]["name"]
        raise SettingsError(f"{kind.where} contradicts the stored definition {name}: {difference}")
    (version,) = desired["spec"]["versions"]
    there = next(each for each in stored["spec"]["versions"] if each["name"] == version["name"])
    # The existing CustomResourceDefinition decides which version is stored; the class declares only one of the
    # versions.
    version = {**version, "storage": there["storage"]}
    names = {**desired["spec"]["names"]}
    desired = {**desired, "spec": {**desired["spec"], "names": names, "versions": [version]}}
    is_there = says(there, version) and says(stored["spec"]["names"], names)
    return None if is_there else desired


def install(
    apps: Iterable[App], find: Callable[[Key], Object | None], apply: Callable[[Object], Object]
) -> list[Object]:
    """Apply the CustomResourceDefinitions in `changes`, and return them as stored.

    Raises `SettingsError` if a kind contradicts its stored CustomResourceDefinition, or if the API server refuses one.
    """
    stored = []
    for definition in changes(apps, find):
        try:
            stored.append(apply(definition))
        except ApiError as error:
            if error.retryable:
                raise
            raise SettingsError(f"the definition {definition.name} is refused: {error}") from error
    return stored
