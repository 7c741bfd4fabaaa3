"""Tests of the filters of metrics: disabled metrics, and the allowed values of labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.metric_filters import MetricFilters, exposed, read_filters, use_filters


@pytest.fixture(autouse=True)
def _without_filters() -> Iterator[None]:
    yield
    use_filters(MetricFilters())


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    requests = Counter("requests", "Requests.", ["verb", "code"], registry=registry)
    for verb in ("GET", "LIST", "WATCH"):
        requests.labels(verb, "200").inc(2)
    seconds = Histogram("seconds", "Durations.", ["verb"], buckets=[1], registry=registry)
    for verb in ("GET", "LIST"):
        seconds.labels(verb).observe(0.5)
    sizes = Gauge("size", "Sizes.", ["verb"], registry=registry)
    sizes.labels("GET").set(7)
    sizes.labels("LIST").set(9)
    return registry


def shown(registry: CollectorRegistry) -> list[str]:
    text = generate_latest(exposed(registry)).decode()
    return [line for line in text.splitlines() if not line.startswith("#") and "_created" not in line]


def use(*labels: str, disabled: tuple[str, ...] = (), manifest: str = "") -> None:
    use_filters(read_filters(disabled, labels, manifest, ""))


def test_without_filters_the_registry_is_shown(registry: CollectorRegistry) -> None:
    assert exposed(registry) is registry


@pytest.mark.parametrize("name", ["requests_total", "seconds", "size"])
def test_a_disabled_metric_is_not_shown(registry: CollectorRegistry, name: str) -> None:
    family = name.removesuffix("_total")
    assert any(line.startswith(family) for line in shown(registry))
    use(disabled=(name,))
    lines = shown(registry)
    assert lines
    assert [line for line in lines if line.startswith(family)] == []


def test_other_values_of_a_label_become_unexpected(registry: CollectorRegistry) -> None:
    use("requests_total,verb=GET", "seconds,verb=", "size,verb=GET")
    lines = shown(registry)
    assert 'requests_total{code="200",verb="GET"} 2.0' in lines
    assert 'requests_total{code="200",verb="unexpected"} 4.0' in lines
    assert 'seconds_bucket{le="1.0",verb="unexpected"} 2.0' in lines
    assert 'seconds_count{verb="unexpected"} 2.0' in lines
    assert {'size{verb="GET"} 7.0', 'size{verb="unexpected"} 9.0'} < {*lines}
    assert not any('"LIST"' in line for line in lines)


def test_one_text_may_contain_several_pairs(registry: CollectorRegistry) -> None:
    use('"requests_total,verb=GET,LIST","size,verb=LIST"')
    lines = shown(registry)
    assert 'requests_total{code="200",verb="unexpected"} 2.0' in lines
    assert 'size{verb="unexpected"} 7.0' in lines


def test_the_values_may_be_in_a_file(registry: CollectorRegistry, tmp_path: Path) -> None:
    file = tmp_path / "labels.yaml"
    file.write_text('"requests_total,verb": "LIST,WATCH"\n"size,verb": ""\n')
    use(manifest=str(file))
    lines = shown(registry)
    assert 'requests_total{code="200",verb="unexpected"} 2.0' in lines
    assert [line for line in lines if line.startswith("size")] == ['size{verb="unexpected"} 9.0']


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((["a-b"], [], "", ""), 'must be fully qualified metric names matching .*, got "a-b"'),
        (([], ["a=b"], "", ""), "must have keys with format `metricName,labelName`"),
        (([], ["a,b"], "", ""), "a must be formatted as key=value"),
        (([], ["a,b=c"], "file", ""), "exclude each other"),
        (([], [], "/nowhere", ""), "/nowhere cannot be read"),
        (([], [], "", "1.36"), "must be omitted or have the value '1.35'"),
    ],
)
def test_invalid_filters_are_refused(arguments: tuple[list[str], list[str], str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        read_filters(*arguments)


@pytest.mark.parametrize("content", ["- a", "a,b: [c]", "a: {", "a,b: 1"])
def test_an_invalid_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "labels.yaml").write_text(content)
    with pytest.raises(SettingsError, match=r"metrics\.allow_labels_manifest"):
        read_filters([], [], str(tmp_path / "labels.yaml"), "")


def test_the_previous_version_is_accepted() -> None:
    assert read_filters([], [], "", "1.35").disabled == frozenset()
