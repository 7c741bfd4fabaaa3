"""Named formats of strings, for example `format.dns1123Label().validate(name)`, which returns the errors of a string.

Source: apiserver `pkg/cel/library/format.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.types import Type, opaque
from ctrlmgr.expressions.values import NONE, Optional


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    name: str
    problems: Callable[[str], list[str]]
    """The type of a function that returns the errors of a string."""
    longest_pattern: int
    """The length of the format's pattern in characters, which determines the cost."""

    cel_type: ClassVar[Type] = opaque("kubernetes.NamedFormat")


def format_library(formats: Mapping[str, Format]) -> Library:
    """Return the functions that create formats, and the function that applies a format to a string."""
    library = Library()
    for name, each in formats.items():
        library.function(f"format.{name}", "() -> kubernetes.NamedFormat")(lambda each=each: each)
    library.function("format.named", "(string) -> optional_type(kubernetes.NamedFormat)")(
        lambda name: Optional(True, formats[name]) if name in formats else NONE
    )
    library.function("validate", "kubernetes.NamedFormat.(string) -> optional_type(list(string))")(_validate)
    return library


def _validate(format_: Format, text: str) -> Optional:
    problems = format_.problems(text)
    return Optional(True, problems) if problems else NONE
