"""Runs three thousand inputs that should cost too much or cause errors, against a complete server."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from tests.robustness.attack.inputs import Inputs
from tests.robustness.attack.server_attack import REQUEST_BODIES, attack_server

INPUTS = 3_000


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_server_survives_random_attacks(tmp_path: Path) -> None:
    assert not attack_server(tmp_path, 1, INPUTS)


def test_inputs_are_equal_for_equal_seeds_and_of_many_kinds() -> None:
    first, again, other = (list(islice(Inputs(REQUEST_BODIES, seed), 300)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    families = Counter(each.family for each in first)
    assert len(families) >= 13
    assert min(families.values()) > 3
