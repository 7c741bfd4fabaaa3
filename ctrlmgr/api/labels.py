"""Equality selectors: the form a Service's `spec.selector` has.

Guarantees: `matches` is exactly `labels.Set.AsSelector().Matches` for selectors made of equalities (apimachinery
`pkg/labels`), and every object that a selector matches has the value `selector_pair` names among its `label_pairs`,
so an index over pairs never misses a match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Say whether `labels` has every pair of `selector`; an empty selector matches everything."""
    return selector.items() <= labels.items()


def selector_pair(namespace: str, selector: Mapping[str, str]) -> str:
    """Return the one pair of `selector` to index its owner under, as `namespace/key=value`; `namespace/` if empty.

    The smallest key is taken: any would do, but it has to be the same one every time.
    """
    if not selector:
        return f"{namespace}/"
    key = min(selector)
    return f"{namespace}/{key}={selector[key]}"


def label_pairs(namespace: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield every value of `selector_pair` that a selector matching `labels` in `namespace` can have."""
    yield f"{namespace}/"
    for key, value in labels.items():
        yield f"{namespace}/{key}={value}"
