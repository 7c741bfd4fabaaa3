"""Tests of the current span, of trace contexts, and of the configuration file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ctrlmgr import threads
from ctrlmgr.errors import SettingsError
from ctrlmgr.tracing import spans
from ctrlmgr.tracing.trace_context import parse_context
from ctrlmgr.tracing.tracing_configuration import TracingConfiguration, read_tracing
from tests.tracing.memory_tracer import MemoryTracer

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_without_a_tracer_a_span_is_one_shared_object() -> None:
    assert spans.span("a") is spans.span("b", parent=CONTEXT)
    with spans.span("a") as span, spans.within(CONTEXT):
        assert span is None
        assert spans.current() == spans.sampled() == ""


def test_spans_nest_and_end_with_their_error() -> None:
    tracer = MemoryTracer()
    with spans.installed(tracer):
        with pytest.raises(KeyError), spans.span("outer", parent=CONTEXT, key="x"), spans.span("inner"):
            raise KeyError("lost")
        assert spans.current() == ""
    outer, inner = tracer.spans
    assert (str(outer.above), inner.above, outer.attributes) == (CONTEXT, outer.at, {"key": "x"})
    assert (outer.error, inner.error) == ("KeyError: 'lost'", "KeyError: 'lost'")
    assert tracer.is_shut_down
    assert not spans.is_on()


def test_an_unsampled_context_is_passed_on_and_not_stored() -> None:
    with spans.installed(MemoryTracer()), spans.span("a", parent=f"{CONTEXT[:-2]}00"):
        assert spans.current().endswith("-00")
        assert spans.sampled() == ""


def test_threads_of_a_batch_share_the_current_span() -> None:
    barrier = threading.Barrier(2)

    def look(number: int) -> str:
        barrier.wait(10)
        return spans.current()

    with spans.installed(MemoryTracer()), spans.span("a") as span:
        assert span is not None
        assert threads.each("batch", look, (1, 2), 2) == [span.context, span.context]


@pytest.mark.parametrize(
    ("header", "is_valid"),
    [
        (CONTEXT, True),
        (f"01{CONTEXT[2:]}-more", True),
        (f"{CONTEXT}-more", False),
        (f"ff{CONTEXT[2:]}", False),
        (CONTEXT.upper(), False),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", False),
        (f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01", False),
        ("", False),
    ],
)
def test_a_malformed_header_is_ignored(header: str, is_valid: bool) -> None:
    found = parse_context(header)
    assert (found is not None) == is_valid
    assert found is None or str(found) == CONTEXT


_NEGATIVE = "3: samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"
HEAD = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n"


def test_the_configuration_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(f"{HEAD}endpoint: unix:///run/otel.sock\nsamplingRatePerMillion: 100\n")
    assert read_tracing(file) == TracingConfiguration("unix:///run/otel.sock", 100)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            f"{HEAD}samplingRatePerMillion: -1",
            _NEGATIVE,
        ),
        (
            f"{HEAD}samplingRatePerMillion: 1000001",
            "3: samplingRatePerMillion: Invalid value: 1000001: "
            "sampling rate per million must be less than or equal to one million",
        ),
        (
            f"{HEAD}endpoint: http://localhost:4317",
            '3: endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  '
            "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md",
        ),
        (f"{HEAD}endPoint: x", "3: Object contains unknown field `endPoint`"),
        ("apiVersion: v1\nkind: TracingConfiguration", "1: apiVersion must be "),
    ],
)
def test_a_configuration_that_kube_apiserver_refuses_is_refused(tmp_path: Path, fields: str, problem: str) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(fields)
    with pytest.raises(SettingsError) as refused:
        read_tracing(file)
    assert str(refused.value).startswith(f"{file}:{problem}")
