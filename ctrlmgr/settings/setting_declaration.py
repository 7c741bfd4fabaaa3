"""Declares settings: the declaration of a field contains the kind, the default and the description of the setting.

A field of a settings class is `Annotated[TYPE, KIND, Setting("what it does", flag="--name", metavar="WHAT")]`. The
command line, the settings file, the environment, `settings.toml` and docs/settings.md all use this declaration.

Packages of higher layers can add settings in the following way. The options of a controller are a frozen dataclass in
the controller's package, and the controller's descriptor names this dataclass. `declare` adds the fields of this
dataclass as keys of a section, as if `Settings` had the fields itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, NamedTuple, get_type_hints

from ctrlmgr.settings.setting_types import Kind


@dataclass(frozen=True)
class Setting:
    """The description of one setting, and its command-line flag, if there is one."""

    text: str
    """The description in whole sentences; the first sentence is the help text of the flag."""
    flag: str = ""
    """The command-line flag with its dashes; empty if the setting has no flag."""
    metavar: str = ""
    formerly: str = ""
    """The setting's former key, which still works with a warning; empty if the key has never changed."""

    @property
    def help(self) -> str:
        """The first sentence of the setting's description."""
        head, stop, _ = self.text.partition(". ")
        return head + "." if stop else self.text


class Declaration(NamedTuple):
    """One setting, identified by its dotted key."""

    key: str
    kind: Kind
    setting: Setting
    default: Any


_KNOWN: dict[type[Any], dict[str, Declaration]] = {}


def declarations_of(section: type[Any]) -> dict[str, Declaration]:
    """Return the settings of a class and its nested classes, by dotted key, in the order of the fields."""
    if section not in _KNOWN:
        _KNOWN[section] = _read(section)
    return _KNOWN[section]


def _read(section: type[Any]) -> dict[str, Declaration]:
    found: dict[str, Declaration] = {}
    hints = get_type_hints(section, include_extras=True)
    for each in fields(section):
        hint = hints[each.name]
        if isinstance(hint, type) and is_dataclass(hint):
            inner = declarations_of(hint).items()
            found |= {f"{each.name}.{key}": it._replace(key=f"{each.name}.{key}") for key, it in inner}
        elif hasattr(hint, "__metadata__"):
            kind, *metadata = hint.__metadata__
            default = each.default_factory() if each.default_factory is not MISSING else each.default
            found[each.name] = Declaration(each.name, kind, metadata[0] if metadata else Setting(""), default)
    return found


def kinds_of(section: type[Any]) -> dict[str, Kind]:
    """Return the value type of each setting of a class, by dotted key, in the order of the fields."""
    return {key: each.kind for key, each in declarations_of(section).items()}


_DECLARED: dict[type[Any], str] = {}


def declare(options: type[Any], section: str) -> None:
    """Add the fields of a frozen dataclass as keys of `section`; if the class was declared before, do nothing.

    Raises ValueError if another class has already declared one of the keys.
    """
    if options in _DECLARED:
        return
    taken = {f"{place}.{key}" for other, place in _DECLARED.items() for key in declarations_of(other)}
    if twice := taken & {f"{section}.{key}" for key in declarations_of(options)}:
        raise ValueError(f"declared twice: {', '.join(sorted(twice))}")
    _DECLARED[options] = section


def declared() -> Iterator[tuple[str, type[Any]]]:
    """Yield the declared classes as (section, class), in the order of their declaration."""
    for options, section in _DECLARED.items():
        yield section, options
