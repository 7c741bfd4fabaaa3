"""The meanings that a flag of kube-apiserver or kube-controller-manager can have for `ctrlmgr serve`.

A flag whose name and meaning are those of a setting of ctrlmgr is declared there (`settings.setting_declaration`), not
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ctrlmgr.errors import SettingsError


class Effect(NamedTuple):
    """The changes that a given flag makes."""

    values: Mapping[str, str]
    """Values of settings, by dotted key."""
    warning: str = ""
    """A sentence for the user; empty: none."""


@dataclass(frozen=True)
class Sets:
    """The flag sets a setting of ctrlmgr that has another name."""

    key: str
    """The setting's dotted key."""
    read: Callable[[str], str]
    """Return the setting's value for the flag's; raises ValueError, whose text says what the flag's value must be."""

    def effect(self, flag: str, value: str) -> Effect:
        """Return the setting's value; raises `SettingsError`."""
        try:
            return Effect({self.key: self.read(value)})
        except ValueError as error:
            raise SettingsError(f"{flag} is {value!r}; it must be {error}") from error

    @property
    def text(self) -> str:
        """The meaning, for the documentation."""
        return f"Sets `{self.key}`."


@dataclass(frozen=True)
class Fixed:
    """ctrlmgr always behaves as if the flag had one of `values`; another value is refused."""

    values: tuple[str, ...]
    instead: str
    """The remedy for another value."""

    def effect(self, flag: str, value: str) -> Effect:
        """Return no effect; raises `SettingsError` for another value."""
        if value.lower() not in self.values:
            raise SettingsError(f"{flag}={value}: {self.instead}")
        return Effect({})

    @property
    def text(self) -> str:
        """The meaning, for the documentation."""
        values = " or ".join(f"`{value}`" if value else "an empty value" for value in self.values)
        return f"Accepts {values}. Otherwise: {self.instead}."


@dataclass(frozen=True)
class NoEffect:
    """The flag tunes something that ctrlmgr does not have; it is accepted with a warning."""

    reason: str

    def effect(self, flag: str, value: str) -> Effect:
        """Return the warning."""
        return Effect({}, f"{flag} has no effect: {self.reason}")

    @property
    def text(self) -> str:
        """The meaning, for the documentation."""
        return f"No effect, with a warning: {self.reason}."


@dataclass(frozen=True)
class Refused:
    """The flag asks for something that ctrlmgr does not do, or does in another way."""

    instead: str

    def effect(self, flag: str, value: str) -> Effect:
        """Raise `SettingsError`."""
        raise SettingsError(f"{flag} is not supported: {self.instead}")

    @property
    def text(self) -> str:
        """The meaning, for the documentation."""
        return f"Refused: {self.instead}."


Meaning = Sets | Fixed | NoEffect | Refused
