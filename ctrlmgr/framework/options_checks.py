"""Checks the options of decorators and class statements when a module is imported, before the options are used.

Guarantees: an invalid option raises a TypeError with the option, its value and an example of a valid value.
"""

from __future__ import annotations

import inspect
import re
from difflib import get_close_matches
from typing import Any


def check_list(name: str, value: Any, example: str, *, of: type | None = None) -> None:
    """Raise TypeError unless `value` is a sequence whose members have the type `of`; `example` is a valid value.

    A string is refused, because Python would iterate over its characters.
    """
    is_listed = not isinstance(value, str | bytes) and hasattr(value, "__iter__")
    if not is_listed or (of is not None and not all(isinstance(each, of) for each in value)):
        raise TypeError(
            f"{name}={_shown(value)} is not a list{f' of {of.__name__}' if of else ''}; write `{name}={example}`"
        )


def check_count(name: str, value: Any, least: int) -> None:
    """Raise TypeError unless `value` is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise TypeError(f"{name}={value!r} is not a whole number of at least {least}; write `{name}={max(least, 1)}`")


def check_seconds(name: str, value: Any) -> None:
    """Raise TypeError unless `value` is a positive number of seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise TypeError(f"{name}={value!r} is not a number of seconds above 0; write `{name}=300` for five minutes")


def remedy(error: BaseException) -> str:
    """Return a suggestion for an unknown keyword or attribute; empty if no known name is similar."""
    if isinstance(error, AttributeError) and error.name and error.obj is not None:
        return _meant(error.name, [each for each in dir(error.obj) if not each.startswith("_")])
    if (
        isinstance(error, TypeError)
        and (word := _KEYWORD.search(str(error)))
        and (called := _CALLED.search(str(error)))
    ):
        return _meant(word["unexpected"] or word["invalid"], _keywords(called[1], called[2]), "=")
    return ""


_KEYWORD = re.compile(r"unexpected keyword argument '(?P<unexpected>\w+)'|^'(?P<invalid>\w+)' is an invalid keyword")
_CALLED = re.compile(r"(\w+)\.(\w+)\(\)")


def _meant(word: str, known: list[str], ending: str = "") -> str:
    near = get_close_matches(_snake(word), known, 1)
    return f"; did you mean {near[0]}{ending}?" if near else ""


def _snake(word: str) -> str:
    """Return the Python spelling of a JSON schema keyword such as `minLength`."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in word)


def _keywords(owner: str, method: str) -> list[str]:
    """Return the keyword arguments of a method of one of our public classes; empty for any other method."""
    import ctrlmgr

    found = getattr(ctrlmgr, owner, None)
    called = found if method in ("__init__", "__new__") else getattr(found, method, None)
    return list(inspect.signature(called).parameters) if callable(called) else []


def _shown(value: Any) -> str:
    return value.__name__ if isinstance(value, type) or inspect.isfunction(value) else repr(value)
