from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """Discard the log lines of thousands of reconciles, because the tests do not need them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    yield
    structlog.reset_defaults()
