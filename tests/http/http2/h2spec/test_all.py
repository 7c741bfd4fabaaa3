"""Tests that all 146 cases of h2spec are present, and the single case of its strict mode."""

from __future__ import annotations

from tests.http.http2.h2spec import (
    test_definitions,
    test_frames_and_streams,
    test_generic,
    test_generic_hpack,
    test_hpack,
    test_messages,
)
from tests.http.http2.h2spec.peer import Case

MODULES = (
    test_generic,
    test_generic_hpack,
    test_frames_and_streams,
    test_definitions,
    test_messages,
    test_hpack,
)
ALONE = 2
"""Cases that need a separate connection: one with a wrong preface, and one with more streams than the server allows."""
BESIDES = 1
"""Cases that h2spec does not have: trailers that end the stream."""


def test_no_case_is_missing() -> None:
    cases = [each for module in MODULES for value in vars(module).values() for each in _cases(value)]
    assert len(cases) + ALONE - BESIDES == 146 + 1


def _cases(value: object) -> list[Case]:
    return [each for each in value if isinstance(each, Case)] if isinstance(value, list) else []
