"""Leaves out metrics, and limits the values of labels, as the flags of component-base do.

Guarantees: filters change only what a scrape returns, and cost nothing otherwise. If a label has a value that is not
allowed, the value becomes `unexpected`. The series of counters and histograms that are equal then are added up; of
equal gauges, the last one counts.

Source: component-base `metrics/options.go`, `metrics/api/v1/config.go`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client import Counter
from prometheus_client.core import Metric
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Sample

from ctrlmgr.errors import SettingsError

_NAME: Final = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
_PREVIOUS: Final = "1.35"
_UNEXPECTED: Final = "unexpected"
_ADDED_UP: Final = frozenset({"counter", "histogram", "summary"})
_CREATED: Final = "_created"
_disabled = Counter("disabled_metrics", "The count of disabled metrics.")

Allowed = Mapping[str, Mapping[str, frozenset[str]]]
"""The allowed values by metric and label."""


class MetricFilters:
    """The metrics to leave out, and the allowed values of labels."""

    def __init__(self, disabled: Iterable[str] = (), allowed: Allowed | None = None) -> None:
        """Leave out the metrics `disabled`, given by their full names."""
        self.disabled = frozenset(disabled)
        self.allowed = allowed or {}

    def apply(self, metrics: Iterable[Metric]) -> Iterator[Metric]:
        """Yield the filtered metrics."""
        for metric in metrics:
            names = {metric.name, f"{metric.name}_total"} if metric.type == "counter" else {metric.name}
            if names.isdisjoint(self.disabled):
                rules = next((self.allowed[name] for name in names if name in self.allowed), None)
                yield metric if rules is None else _limited(metric, rules)


class _Filtered(Collector):
    """The metrics of a registry after the filters."""

    def __init__(self, registry: CollectorRegistry, filters: MetricFilters) -> None:
        self._registry = registry
        self._filters = filters

    def collect(self) -> Iterator[Metric]:
        return self._filters.apply(self._registry.collect())


_filters = MetricFilters()


def exposed(registry: CollectorRegistry) -> CollectorRegistry:
    """Return the metrics of a registry that this process shows."""
    if not (_filters.disabled or _filters.allowed):
        return registry
    found = CollectorRegistry()
    found.register(_Filtered(registry, _filters))
    return found


def use_filters(filters: MetricFilters) -> None:
    """Filter the metrics of this process from now on."""
    global _filters
    _disabled.inc(len(filters.disabled - _filters.disabled))
    _filters = filters


def read_filters(disabled: Sequence[str], labels: Sequence[str], manifest: str, hidden: str) -> MetricFilters:
    """Return the filters that the settings of the section `metrics` describe; raises `SettingsError`."""
    for name in disabled:
        if not re.fullmatch(_NAME, name):
            raise SettingsError(
                f'metrics.disabled: must be fully qualified metric names matching "^{_NAME}$", got "{name}"'
            )
    if labels and manifest:
        raise SettingsError("--allow-metric-labels and --allow-metric-labels-manifest exclude each other")
    if hidden not in ("", _PREVIOUS):
        raise SettingsError(
            f"metrics.show_hidden_for_version is {hidden!r}; it must be omitted or have the value '{_PREVIOUS}'; only "
            "the previous minor version is allowed"
        )
    mapping = _read_manifest(Path(manifest).expanduser()) if manifest else dict(_pairs(labels))
    return MetricFilters(disabled, _allowed(mapping))


def _pairs(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the key and the value of each pair; in a text with several pairs, each is in quotes (`StringToString`)."""
    for text in texts:
        for pair in [text.strip('"')] if text.count("=") == 1 else next(csv.reader([text])):
            key, equals, value = pair.partition("=")
            if not equals:
                raise SettingsError(f"metrics.allow_labels: {pair} must be formatted as key=value")
            yield key, value


def _read_manifest(file: Path) -> Mapping[Any, Any]:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"metrics.allow_labels_manifest: {file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SettingsError(f"metrics.allow_labels_manifest: {file} is not YAML: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise SettingsError(f"metrics.allow_labels_manifest: {file} must map METRIC,LABEL to VALUE,VALUE")
    return found


def _allowed(mapping: Mapping[str, str]) -> Allowed:
    allowed: dict[str, dict[str, frozenset[str]]] = {}
    for key, values in mapping.items():
        if not re.fullmatch(f"{_NAME},{_LABEL}", key):
            raise SettingsError(
                "metrics.allow_labels: must have keys with format `metricName,labelName` where metricName matches "
                f'"{_NAME}" and labelName matches "{_LABEL}"'
            )
        name, _, label = key.partition(",")
        allowed.setdefault(name, {})[label] = frozenset(values.split(","))
    return allowed


def _limited(metric: Metric, rules: Mapping[str, frozenset[str]]) -> Metric:
    """Return a metric whose labels have only allowed values."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    for sample in metric.samples:
        labels = {
            name: value if name not in rules or value in rules[name] else _UNEXPECTED
            for name, value in sample.labels.items()
        }
        key = sample.name, tuple(sorted(labels.items()))
        adds = key in found and metric.type in _ADDED_UP and not sample.name.endswith(_CREATED)
        total = sample.value + (found[key].value if adds else 0)
        found[key] = sample._replace(labels=labels, value=total)
    limited = Metric(metric.name, metric.documentation, metric.type, metric.unit)
    limited.samples = list(found.values())
    return limited
