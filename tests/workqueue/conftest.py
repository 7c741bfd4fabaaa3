from __future__ import annotations

import pytest

from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue("test", clock=clock)
