from __future__ import annotations

import pytest

from tests.server.turns import long_turns

CONSOLE = "2026-01-01T00:00:00Z [warning  ] event loop blocked          cpu_seconds={} seconds=0.6 where=a:1"
JSON = '{{"cpu_seconds": {}, "seconds": 0.6, "where": "a:1", "event": "event loop blocked", "level": "warning"}}'


@pytest.mark.parametrize("line", [CONSOLE, JSON], ids=["console", "json"])
def test_long_turns_are_found_in_a_log(line: str) -> None:
    short, long = line.format("0.31"), line.format("0.71")
    assert long_turns(f"ready cpu_seconds=9\n{short}\n{long}\n") == [long]
