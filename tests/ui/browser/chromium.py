"""Starts the Chromium of the Linux distribution, without background activity."""

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
    """Start Chromium; the browser is closed at the end of the block."""
    program = os.environ.get("CTRLMGR_TEST_CHROMIUM") or shutil.which("chromium")
    assert program, "the tests need Chromium; scripts/test installs it"
    return playwright.chromium.launch(executable_path=program, args=_FLAGS)
