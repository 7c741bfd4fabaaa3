"""What ctrlmgr is tested with, for those who test their own controllers.

`FakeClock` stands in for the machine's clock wherever a `Clock` is asked for. `builders` make objects. `plugin` is
pytest's: recordings as tests (`replays`), and a control plane for a test (`served`).
"""

from ctrlmgr.testing.clock import FakeClock

__all__ = ["FakeClock"]
