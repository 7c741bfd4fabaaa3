"""Returns the errors of Go's `time.Parse` for a string that is not a valid time.

Guarantees: the messages are the same as Go's for the two layouts with which Kubernetes parses times (RFC 3339 with
seconds, and with microseconds). The caller must ensure that the string is not a valid time.

Source: Go's `time/format.go`, `parse`, `skip` and `ParseError.Error`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import NamedTuple

SECONDS = "2006-01-02T15:04:05Z07:00"
MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"

_FRACTION = ".000000"
_SEPARATORS = ("-", "-", "T", ":", ":")
"""The characters that precede each number of a time except the year."""


class _Bad(Exception):
    """Raised if the string does not match a part of the layout."""


class _OutOfRange(Exception):
    """Raised if a number is out of range; the message names the number."""


class _Number(NamedTuple):
    """A number in a time, such as the month; a number has two digits, or one digit if `fixed` is false."""

    layout: str
    name: str
    low: int
    high: int
    fixed: bool = True


_NUMBERS = (
    _Number("01", "month", 1, 12),
    _Number("02", "", 0, 99),  # whether the month has that many days is checked at the end
    _Number("15", "hour", 0, 23, fixed=False),
    _Number("04", "minute", 0, 59),
    _Number("05", "second", 0, 59),
)


def parse_problem(text: str, layout: str) -> str:
    """Return Go's error for a string that is not a time in `layout`: `parsing time "x" as "2006…": cannot parse …`."""
    return _Reading(text, layout).problem()


class _Reading:
    """The current position in a string that is being parsed."""

    def __init__(self, text: str, layout: str) -> None:
        self._text, self._layout, self._rest = text, layout, text
        self._date: list[int] = []  # the year, the month and the day

    def problem(self) -> str:
        for part, read in self._parts():
            before = self._rest
            try:
                read()
            except _Bad:
                rest = self._rest if part in _SEPARATORS else before
                where = f"cannot parse {_quote(rest)} as {_quote(part)}"
                return f"parsing time {_quote(self._text)} as {_quote(self._layout)}: {where}"
            except _OutOfRange as what:
                return f"parsing time {_quote(self._text)}: {what} out of range"
        if self._rest:
            return f"parsing time {_quote(self._text)}: extra text: {_quote(self._rest)}"
        return f"parsing time {_quote(self._text)}: {self._last_problem()} out of range"

    def _last_problem(self) -> str:
        """Return the name of the number that is out of range in a string that matches the layout.

        The number out of range is the day, or a year that Python's `date` does not support.
        """
        year, month, day = self._date[:3]
        try:
            date(year, month, day)
        except ValueError:
            return "day" if year else "year"
        return "year"

    def _parts(self) -> list[tuple[str, Callable[[], None]]]:
        parts: list[tuple[str, Callable[[], None]]] = [("2006", self._year)]
        for separator, number in zip(_SEPARATORS, _NUMBERS, strict=True):
            parts += [(separator, partial(self._skip, separator)), (number.layout, partial(self._number, number))]
        fraction = (_FRACTION, self._fraction) if _FRACTION in self._layout else ("", self._optional_fraction)
        return [*parts, fraction, ("Z07:00", self._zone)]

    def _skip(self, separator: str) -> None:
        if not self._rest.startswith(separator):
            raise _Bad
        self._rest = self._rest[len(separator) :]

    def _year(self) -> None:
        year, self._rest = self._rest[:4], self._rest[4:]
        if len(year) < 4 or not _are_digits(year):
            raise _Bad
        self._date.append(int(year))

    def _number(self, number: _Number) -> None:
        length = 2 if _are_digits(self._rest[1:2]) else 1
        digits = self._rest[:length]
        if not _are_digits(digits) or (number.fixed and length == 1):
            raise _Bad
        self._rest = self._rest[length:]
        if not number.low <= int(digits) <= number.high:
            raise _OutOfRange(number.name)
        self._date.append(int(digits))

    def _fraction(self) -> None:
        fraction, self._rest = self._rest[: len(_FRACTION)], self._rest[len(_FRACTION) :]
        if len(fraction) < len(_FRACTION) or fraction[0] not in ".," or not _are_digits(fraction[1:]):
            raise _Bad

    def _optional_fraction(self) -> None:
        if self._rest[:1] in (".", ",") and _are_digits(self._rest[1:2]):
            self._rest = self._rest[1:].lstrip("0123456789")

    def _zone(self) -> None:
        if self._rest.startswith("Z"):
            self._rest = self._rest[1:]
            return
        zone, self._rest = self._rest[:6], self._rest[6:]
        hours, minutes = zone[1:3], zone[4:6]
        if len(zone) < 6 or zone[3] != ":" or not (_are_digits(hours) and _are_digits(minutes)):
            raise _Bad
        if int(hours) > 24:
            raise _OutOfRange("time zone offset hour")
        if int(minutes) > 60:
            raise _OutOfRange("time zone offset minute")
        if zone[0] not in "+-":
            raise _Bad


def _are_digits(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _quote(text: str) -> str:
    """Quote a string as Go's package time does: non-ASCII bytes and control characters are escaped."""
    quoted = "".join(
        f"\\{each}" if each in '"\\' else each if " " <= each <= "\x7f" else _escaped(each) for each in text
    )
    return f'"{quoted}"'


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
