"""Drives the distribution's Chromium, without background activity."""

from __future__ import annotations

import os
import shutil

from playwright.sync_api import Browser, Playwright

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launched(playwright: Playwright) -> Browser:
    """Start Chromium; the context closes it."""
    program = os.environ.get("CTRLMGR_TEST_CHROMIUM") or shutil.which("chromium")
    assert program, "the tests need Chromium; scripts/test installs it"
    return playwright.chromium.launch(executable_path=program, args=_FLAGS)
