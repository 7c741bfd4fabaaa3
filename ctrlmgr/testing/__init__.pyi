from ctrlmgr.testing.fake_clock import FakeClock as FakeClock
from ctrlmgr.testing.harness import Harness as Harness
from ctrlmgr.testing.interleavings import every_interleaving as every_interleaving

__all__ = ["FakeClock", "Harness", "every_interleaving"]
