"""Records spans of requests, admission, webhook calls, appends and reconciles for distributed tracing.

- `spans` is the interface that other packages use. Without a tracer, a span costs one comparison.
- `trace_context` reads and checks the W3C header `traceparent`.
- `otlp_tracer` exports spans with OpenTelemetry; only `serve` imports it, and only if tracing is configured.
"""
