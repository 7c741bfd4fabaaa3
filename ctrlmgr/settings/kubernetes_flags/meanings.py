"""Defines the effects that a flag of kube-apiserver or kube-controller-manager can have on `ctrlmgr serve`.

If a setting of ctrlmgr has the same name and meaning as a flag, the flag is declared together with the setting
(`settings.setting_declaration`), and not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ctrlmgr.errors import SettingsError


class Effect(NamedTuple):
    """The effect of a flag that the user has set."""

    values: Mapping[str, str]
    """The values of the settings that the flag sets, by dotted key."""
    warning: str = ""
    """A warning for the user; empty if there is nothing to warn about."""


@dataclass(frozen=True)
class Sets:
    """A flag that sets a setting of ctrlmgr whose name differs from the flag's name."""

    key: str
    """The setting's dotted key."""
    read: Callable[[str], str]
    """Return the value of the setting that corresponds to a value of the flag.

    Raises ValueError if the value is invalid; the message describes the valid values.
    """

    def effect(self, flag: str, value: str) -> Effect:
        """Return the effect of the flag; raises `SettingsError` if the value is invalid."""
        try:
            return Effect({self.key: self.read(value)})
        except ValueError as error:
            raise SettingsError(f"{flag} is {value!r}; it must be {error}") from error

    @property
    def text(self) -> str:
        """The text that the documentation shows for the flag."""
        return f"Sets `{self.key}`."


@dataclass(frozen=True)
class SetsSeveral:
    """A flag that sets several settings of ctrlmgr."""

    read: Callable[[str], Mapping[str, str]]
    """Return the values of settings by dotted key for a value of the flag.

    Raises ValueError if the value is invalid; the message describes the valid values.
    """
    text: str
    """The text that the documentation shows for the flag."""

    def effect(self, flag: str, value: str) -> Effect:
        """Return the effect of the flag; raises `SettingsError` if the value is invalid."""
        try:
            return Effect(self.read(value))
        except ValueError as error:
            raise SettingsError(f"{flag} is {value!r}; it must be {error}") from error


@dataclass(frozen=True)
class FixedFlag:
    """A flag with which Kubernetes can change a behaviour that is fixed in ctrlmgr.

    The flag has no effect if its value is one of `values`; every other value is refused.
    """

    values: tuple[str, ...]
    instead: str
    """The reason for a refusal and the remedy, as the error message about an unsupported value contains them."""

    def effect(self, flag: str, value: str) -> Effect:
        """Return an effect without settings and warnings; raises `SettingsError` if the value is not supported."""
        if value.lower() not in self.values:
            raise SettingsError(f"{flag}={value}: {self.instead}")
        return Effect({})

    @property
    def text(self) -> str:
        """The text that the documentation shows for the flag."""
        values = " or ".join(f"`{value}`" if value else "an empty value" for value in self.values)
        return f"Accepts only {values}; for another value `serve` fails with the message “{self.instead}”."


@dataclass(frozen=True)
class NoEffect:
    """A flag that tunes a component that ctrlmgr does not have; the flag is accepted with a warning."""

    reason: str

    def effect(self, flag: str, value: str) -> Effect:
        """Return an effect that consists of the warning."""
        return Effect({}, f"{flag} has no effect: {self.reason}")

    @property
    def text(self) -> str:
        """The text that the documentation shows for the flag."""
        return f"Ignored; `serve` prints the warning “{self.reason}”."


@dataclass(frozen=True)
class RefusedFlag:
    """A flag for a feature that ctrlmgr does not have, or that is configured in another way; the flag is refused."""

    instead: str

    def effect(self, flag: str, value: str) -> Effect:
        """Raise `SettingsError` with the reason for the refusal."""
        raise SettingsError(f"{flag} is not supported: {self.instead}")

    @property
    def text(self) -> str:
        """The text that the documentation shows for the flag."""
        return f"Refused; `serve` fails with the message “{self.instead}”."


Meaning = Sets | SetsSeveral | FixedFlag | NoEffect | RefusedFlag
