"""Configures ctrlmgr's log lines: structlog on stderr, as console text or as one JSON object per line.

Guarantees:
- No field of a log line contains the password of a database URL.
- A value in a log line is truncated after `LONGEST` characters, and a log line is written in linear time. Therefore one
  request can neither fill a disk nor block the thread that logs the request.
- One log event is one line, because newlines and terminal escapes in values are escaped. Therefore input from the
  network can neither forge a log line nor control a reader's terminal. (Only a traceback on a console takes several
  lines.)
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TextIO, TypeAlias

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_USER = re.compile(r"://[^\s:/@]*:")
_RUN = re.compile(r"[^\s\"',]*")
_PASSWORD = re.compile(r"(\bpassword=)[^\s&]+", re.IGNORECASE)
LONGEST = 16 * 1024
"""The maximum number of characters of one value in a log line."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line separators, and characters that change the text's direction (Unicode's `Bidi_Control`)."""


class _NamedLogger(structlog.WriteLogger):
    """A logger with the name of the module that writes the log lines."""

    def __init__(self, stream: TextIO, module: str = "") -> None:
        super().__init__(stream)
        self.module = module


_Maker: TypeAlias = Callable[..., structlog.typing.FilteringBoundLogger]


class _LevelsByModule:
    """Creates the loggers of modules whose level differs from the level of all others."""

    def __init__(self, default: int, modules: Sequence[tuple[str, str]]) -> None:
        self._default: _Maker = structlog.make_filtering_bound_logger(default)
        levels = {name.lower(): number for name, number in logging.getLevelNamesMapping().items()}
        self._modules: list[tuple[str, _Maker]] = [
            (name, structlog.make_filtering_bound_logger(levels[level])) for name, level in modules
        ]

    def __call__(self, logger: _NamedLogger, **state: Any) -> structlog.typing.FilteringBoundLogger:
        """Return a logger with the level of the first pattern that matches the module of `logger`."""
        names = (logger.module, logger.module.rpartition(".")[2])
        fitting = (made for pattern, made in self._modules if any(fnmatchcase(name, pattern) for name in names))
        return next(fitting, self._default)(logger, **state)


def configure(
    *, level: str, format: str, modules: Sequence[tuple[str, str]] = (), stream: TextIO | None = None
) -> None:
    """Configure structlog for the process.

    `level` and `format` are values of the settings section `[log]`, and `stream` is stderr by default. `modules`
    contains pairs of a pattern and a level; the first pattern that matches the dotted name or the last part of the name
    of a module replaces `level` for that module. Warnings and errors of libraries that use the standard library's
    logging (APScheduler, alembic) are written in the same format.
    """
    stream = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    made = structlog.make_filtering_bound_logger(threshold)
    rendering: list[Processor] = [*_rendering(format, colors=stream.isatty())]
    structlog.configure(
        processors=[*shared, *rendering],
        wrapper_class=_LevelsByModule(threshold, modules) if modules else made,  # type: ignore[arg-type]  # is called
        logger_factory=partial(_NamedLogger, stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.WARNING), force=True)


def configure_unless_done() -> None:
    """Configure structlog for tests, unless the program has already configured it.

    If structlog is not configured, structlog prints all local variables of each traceback.
    """
    if not structlog.is_configured():
        level = structlog.stdlib.add_log_level
        structlog.configure(
            processors=[structlog.contextvars.merge_contextvars, level, *_rendering("console", colors=False)]
        )


def mask(text: str) -> str:
    """Replace the password in every URL or DSN in `text` with `***`, in linear time."""
    return _PASSWORD.sub(r"\1***", _without_url_passwords(text) if "://" in text else text)


def _without_url_passwords(text: str) -> str:
    parts: list[str] = []
    done = at = 0
    while user := _USER.search(text, at):
        run = _RUN.match(text, user.end())
        at = run.end() if run else user.end()
        # The last `@` ends the password, because a password may contain others.
        sign = text.rfind("@", user.end() + 1, at)
        if sign >= 0:
            parts += (text[done : user.end()], "***")
            done = sign
    return "".join([*parts, text[done:]]) if parts else text


def escape(text: str) -> str:
    r"""Return the string with control characters (newlines, escapes, directions) as Python escapes: `\n`, `\x1b`."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _rendering(format: str, *, colors: bool) -> list[Processor]:
    if format == "json":
        return [structlog.processors.format_exc_info, _mask_values, _lead, structlog.processors.JSONRenderer()]
    console = structlog.dev.ConsoleRenderer(
        colors=colors, pad_event_to=28, exception_formatter=structlog.dev.plain_traceback
    )
    return [structlog.processors.format_exc_info, _mask_values, _escape_values, console]


def _mask_values(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return {key: _masked(value) for key, value in event.items()}


def _lead(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Move the most important fields to the beginning of the log line."""
    first = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return {**first, **event}


def _masked(value: Any) -> Any:
    """Mask passwords in strings and containers; other values are converted to strings first."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {_masked(key): _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_masked(item) for item in value]
    text = value if isinstance(value, str) else str(value)
    return mask(text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text) - LONGEST} more characters)")


def _escape_values(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return {key: _escaped(key, value) for key, value in event.items()}


def _escaped(key: str, value: Any) -> Any:
    if key == "exception":
        return "\n".join(escape(line) for line in str(value).split("\n"))
    return escape(value) if isinstance(value, str) else value
