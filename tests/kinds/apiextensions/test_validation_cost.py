from __future__ import annotations

import pytest

from ctrlmgr.kinds.apiextensions.custom_resource_definition import DefinitionStrategy

RULE = b'{"rule":"self.a"}'


@pytest.mark.parametrize(
    ("body", "cost"),
    [
        (b"{}", 4),
        (RULE * 20, 4),
        (RULE * 21, 16),
        (rb'{"\u0072ule":"self.a"}', 16),
        (rb'{"description":"a \u003c b"}', 4),
    ],
)
def test_many_rules_cost_more(body: bytes, cost: int) -> None:
    assert DefinitionStrategy().validation_cost(body) == cost
