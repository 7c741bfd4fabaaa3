"""Leader election: of many processes on one log, which runs the controllers; see `decision`, `elector`, `election`."""

from ctrlmgr.leaderelection.decision import Timing
from ctrlmgr.leaderelection.election import Election
from ctrlmgr.leaderelection.elector import Elector
from ctrlmgr.leaderelection.lock import LeaseLock

__all__ = ["Election", "Elector", "LeaseLock", "Timing"]
