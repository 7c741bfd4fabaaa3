"""Tests of log lines: they contain no passwords, cannot be forged, and are valid JSON."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from ctrlmgr.logging import configure, escape, mask


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers.clear()


def logged(format: str, level: str = "info") -> tuple[structlog.typing.FilteringBoundLogger, io.StringIO]:
    stream = io.StringIO()
    configure(level=level, format=format, stream=stream)
    return structlog.get_logger("test"), stream


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://u:secret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:p@ss:word@h/db", "postgresql://u:***@h/db"),
        ("cannot reach postgres://u:secret@h/db, giving up", "cannot reach postgres://u:***@h/db, giving up"),
        ("host=h password=secret user=u", "host=h password=*** user=u"),
        ("postgresql://h/db?user=u&password=secret&x=1", "postgresql://h/db?user=u&password=***&x=1"),
        ("http://127.0.0.1:8080/readyz", "http://127.0.0.1:8080/readyz"),
        ("sqlite:///a.db", "sqlite:///a.db"),
    ],
)
def test_passwords_are_masked(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize("format", ["console", "json"])
def test_no_field_shows_a_password(format: str) -> None:
    url = "postgresql://u:secret@h/db"
    log, stream = logged(format)
    log.info("opened", url=url, nested={"urls": [url]}, error=ValueError(url))
    try:
        raise ValueError(url)
    except ValueError:
        log.exception("failed")
    assert "secret" not in stream.getvalue()
    assert stream.getvalue().count("u:***@h") == 4


def test_a_value_cannot_forge_a_line_or_control_the_terminal() -> None:
    log, stream = logged("console")
    log.info("seen", name="a\n[info]forged\x1b[31m\u2028")
    assert stream.getvalue().count("\n") == 1
    assert r"a\n[info]forged\x1b[31m\u2028" in stream.getvalue()


def test_a_traceback_keeps_its_lines_but_not_its_escapes() -> None:
    log, stream = logged("console")
    try:
        raise ValueError("\x1b[31m")
    except ValueError:
        log.exception("failed")
    assert "\x1b" not in stream.getvalue()
    assert 'raise ValueError("' in stream.getvalue()
    assert stream.getvalue().count("\n") > 3


def test_json_lines_begin_with_time_and_event() -> None:
    log, stream = logged("json")
    log.info("a\nb", key="c\nd", number=3, nothing=None)
    (line,) = stream.getvalue().splitlines()
    fields = json.loads(line)
    assert list(fields)[:3] == ["timestamp", "level", "event"]
    assert (fields["event"], fields["key"], fields["number"], fields["nothing"]) == ("a\nb", "c\nd", 3, None)


def test_lines_below_the_level_are_not_written() -> None:
    log, stream = logged("json", level="warning")
    log.info("quiet")
    log.warning("loud")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


@pytest.mark.parametrize("format", ["console", "json"])
def test_lines_of_libraries_have_the_same_format(format: str) -> None:
    _, stream = logged(format)
    logging.getLogger("apscheduler").warning("late by %d s", 3)
    logging.getLogger("apscheduler").info("not worth a line")
    assert "late by 3 s" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_ordinary_text_is_unchanged() -> None:
    assert escape("naïve – 日本語") == "naïve – 日本語"


@pytest.mark.parametrize(
    "control", ["\x1b", "\x7f", "\x9b", "\u061c", "\u200e", "\u200f", "\u2028", "\u202a", "\u202e", "\u2066"]
)
def test_control_and_bidirectional_characters_are_escaped(control: str) -> None:
    assert escape(f"a{control}b") == f"a{control.encode('unicode_escape').decode()}b"


@pytest.mark.parametrize(
    ("modules", "written"),
    [
        ([("controller", "debug")], ["ctrlmgr.controllers.job.controller"]),
        ([("ctrlmgr.server.*", "debug")], ["ctrlmgr.server.call"]),
        ([("c*", "debug")], ["ctrlmgr.controllers.job.controller", "ctrlmgr.server.call"]),
        ([("call", "info"), ("c*", "debug")], ["ctrlmgr.controllers.job.controller"]),
    ],
)
def test_a_module_may_have_its_own_level(modules: list[tuple[str, str]], written: list[str]) -> None:
    stream = io.StringIO()
    configure(level="info", format="json", modules=modules, stream=stream)
    for name in ("ctrlmgr.controllers.job.controller", "ctrlmgr.server.call"):
        structlog.get_logger(name).bind(key="a").debug("detail", module=name)
        structlog.get_logger(name).debug("detail", module=name)
    assert [json.loads(line)["module"] for line in stream.getvalue().splitlines()] == [
        name for name in written for _ in range(2)
    ]
