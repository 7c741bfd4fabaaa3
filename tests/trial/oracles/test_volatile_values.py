"""Times, uids and revisions are masked."""

from __future__ import annotations

from ctrlmgr.trial.oracles.volatile_values import masked


def test_times_and_uids_are_masked_everywhere() -> None:
    value = {"a": ["at 2026-01-01T00:00:00Z"], "b": {"c": "x-5e2b3e0e-6a5c-4d7c-9b71-2c6b6b6f0a11"}, "n": 3, "t": True}
    assert masked(value) == {"a": ["at <time>"], "b": {"c": "x-<uid>"}, "n": 3, "t": True}


def test_metadata_that_the_server_sets_is_left_out() -> None:
    value = {
        "kind": "Widget",
        "metadata": {"name": "a", "uid": "1", "generation": 4},
        "status": {"observedGeneration": 4},
    }
    assert masked(value) == {
        "kind": "Widget",
        "metadata": {"name": "a"},
        "status": {"observedGeneration": "<revision>"},
    }
    template = {"metadata": {"generation": 3}}
    assert masked(template) == template


def test_numbers_are_masked_on_request() -> None:
    value = {"count": 4, "text": "tried 3 times", "nothing": None, "is": False}
    assert masked(value, numbers=True) == {
        "count": "<number>",
        "text": "tried <number> times",
        "nothing": None,
        "is": False,
    }
