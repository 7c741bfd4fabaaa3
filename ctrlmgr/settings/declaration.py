"""What is declared of a setting: its kind, default and words, in one place, beside the field that holds it.

A field of a settings class is `Annotated[TYPE, KIND, Setting("what it does", flag="--name", metavar="WHAT")]`. The
command line, the settings file, the environment, `settings.toml` and docs/settings.md all read this declaration.

Classes above this layer take part: what a controller can be told is a frozen dataclass in the controller's own package,
named by its descriptor, and `declare` makes its fields keys of a section, as if `Settings` had them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, NamedTuple, get_type_hints

from ctrlmgr.settings.kinds import Kind


@dataclass(frozen=True)
class Setting:
    """What one setting is for, in words, and the flag of the command line that sets it, if there is one."""

    text: str
    """For people: full sentences, the first of which is the flag's help."""
    flag: str = ""
    """`--name`; empty where only files and variables can say it."""
    metavar: str = ""
    formerly: str = ""
    """The key that this setting had before; it still works, with a warning."""

    @property
    def help(self) -> str:
        """The first sentence."""
        head, stop, _ = self.text.partition(". ")
        return head + "." if stop else self.text


class Declaration(NamedTuple):
    """One setting, by its dotted key."""

    key: str
    kind: Kind
    setting: Setting
    default: Any


_KNOWN: dict[type[Any], dict[str, Declaration]] = {}


def declarations_of(section: type[Any]) -> dict[str, Declaration]:
    """Return what a settings class and those within it declare, by dotted key, in order."""
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
            kind, *said = hint.__metadata__
            default = each.default_factory() if each.default_factory is not MISSING else each.default
            found[each.name] = Declaration(each.name, kind, said[0] if said else Setting(""), default)
    return found


def kinds_of(section: type[Any]) -> dict[str, Kind]:
    """Return the kinds of value of a settings class by dotted key, in order."""
    return {key: each.kind for key, each in declarations_of(section).items()}


_DECLARED: dict[type[Any], str] = {}


def declare(options: type[Any], section: str) -> None:
    """Make the fields of a frozen dataclass keys of `section`; declaring a class again changes nothing.

    Raises ValueError for a key that another class has declared.
    """
    if options in _DECLARED:
        return
    taken = {f"{place}.{key}" for other, place in _DECLARED.items() for key in declarations_of(other)}
    if twice := taken & {f"{section}.{key}" for key in declarations_of(options)}:
        raise ValueError(f"declared twice: {', '.join(sorted(twice))}")
    _DECLARED[options] = section


def declared() -> Iterator[tuple[str, type[Any]]]:
    """Yield what has been declared, as (section, class), in order."""
    for options, section in _DECLARED.items():
        yield section, options
