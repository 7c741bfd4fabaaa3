"""Equality selectors, such as a Service's `spec.selector`.

Guarantees: `matches` equals `labels.Set.AsSelector().Matches` for selectors of equalities (apimachinery `pkg/labels`).
If a selector matches an object, the selector's `selector_pair` is among the object's `label_pairs`. Therefore an index
of selectors by their pairs finds every selector that matches an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Return whether `labels` contains every pair of `selector`; an empty selector matches all labels."""
    return selector.items() <= labels.items()


def selector_pair(namespace: str, selector: Mapping[str, str]) -> str:
    """Return the pair of `selector` for an index, as `namespace/key=value`.

    The pair of an empty selector is `namespace/`. Of several pairs, the pair with the smallest key is returned, so the
    result does not depend on the order of keys.
    """
    if not selector:
        return f"{namespace}/"
    key = min(selector)
    return f"{namespace}/{key}={selector[key]}"


def label_pairs(namespace: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield every possible `selector_pair` of selectors that match `labels` in `namespace`."""
    yield f"{namespace}/"
    for key, value in labels.items():
        yield f"{namespace}/{key}={value}"
