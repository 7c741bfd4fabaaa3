from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.equality_selectors import label_pairs, matches, selector_pair


@pytest.mark.parametrize(
    ("selector", "labels", "matching"),
    [
        pytest.param({}, {}, True, id="an empty selector matches an object without labels"),
        pytest.param({}, {"app": "web"}, True, id="an empty selector matches any labels"),
        pytest.param({"app": "web"}, {"app": "web", "tier": "a"}, True, id="labels beyond the selector do not matter"),
        pytest.param({"app": "web"}, {"app": "db"}, False, id="another value does not match"),
        pytest.param({"app": "web"}, {}, False, id="a missing label does not match"),
        pytest.param({"app": "web", "tier": "a"}, {"app": "web"}, False, id="every pair is required"),
        pytest.param({"app": ""}, {}, False, id="an empty value is not a missing label"),
    ],
)
def test_matches(selector: dict[str, str], labels: dict[str, str], matching: bool) -> None:
    assert matches(selector, labels) is matching


_labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))


@given(selector=_labels, labels=_labels)
def test_an_index_over_pairs_never_misses_a_match(selector: dict[str, str], labels: dict[str, str]) -> None:
    found = selector_pair("ns", selector) in set(label_pairs("ns", labels))
    assert found or not matches(selector, labels)


def test_namespaces_do_not_share_pairs() -> None:
    assert selector_pair("one", {"app": "web"}) not in set(label_pairs("two", {"app": "web"}))
