from __future__ import annotations

import pytest

from ctrlmgr.expressions.values import CostExceeded
from tests.expressions.stage import VALUES, compiled, cost


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 1 == 2", 2),
        ("object", 1),
        ("object.a.b", 3),
        ("object['a']", 2),
        ("object['na' + 'me']", 3),
        ("has(object.a)", 1),
        ("has(object.a.b)", 2),
        ("[1, 2, 3]", 0),
        ("[n, 2]", 11),
        ("{'a': n}", 31),
        ("n in [1, 2, 3]", 1),
        ("n in l", 5),
        ("s == 'hello'", 2),
        ("s + s", 3),
        ("s.contains('ell')", 2),
        ("s.matches('^[a-z]+$')", 3),
        ("n > 0 ? 1 : s.size()", 2),
        ("false && s.size() > 1", 0),
        ("[1, 2, 3].all(i, i in [1, 2, 3].map(j, j + j))", 56),
        ("l.all(x, true)", 11),
        ("'aaaaaaaaaaaa'.replace('a', s) == ''", 3 + 1),
        ("'aaaaaaaaaaaa'.split(s) == []", 3 + 1),
        ("[s, s, s].join('') == ''", 13 + 3),
        ("[1, 2, n].sum() == 6", 11 + 3 + 1),
        ("[s, 'a'].isSorted()", 11),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", 6),
        ("authorizer.path('/a').check('get').allowed()", 350_003),
    ],
)
def test_an_evaluation_has_kubernetes_cost(source: str, expected: int) -> None:
    assert cost(source) == expected


def test_an_evaluation_above_its_limit_ends_unconditionally() -> None:
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        compiled("l.all(x, l.all(y, l.all(z, x > 0))) || true").evaluate(VALUES, limit=50)


def test_a_backtracking_pattern_is_stopped() -> None:
    with pytest.raises(CostExceeded):
        compiled("s.findAll('(?:a.*z)|a')").evaluate({"s": "a" * 20_000})
