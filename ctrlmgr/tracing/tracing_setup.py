"""Creates the tracer of a serving process from the settings."""

from __future__ import annotations

from pathlib import Path
from socket import gethostname

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import Settings
from ctrlmgr.tracing.spans import Tracer


def tracer_of(settings: Settings) -> Tracer | None:
    """Return the tracer that the settings configure; None if tracing is off.

    Raises `SettingsError` if the configuration is not valid, or if OpenTelemetry is not installed. Without a
    configuration, neither OpenTelemetry nor the reader of the configuration is imported.
    """
    file = settings.server.tracing_config_file
    if not file:
        return None
    from ctrlmgr.tracing.tracing_configuration import read_tracing

    configuration = read_tracing(Path(file).expanduser())
    try:
        from ctrlmgr.tracing.otlp_tracer import OtlpTracer
    except ImportError as error:
        hint = "install it with `pip install 'ctrlmgr[tracing]'`"
        raise SettingsError(f"server.tracing_config_file: tracing needs OpenTelemetry; {hint}") from error
    return OtlpTracer(configuration, gethostname())
