"""Leader election decides which of several processes on one log runs the controllers.

`election_step` decides the elector's next step, `elector` performs the step, and `election` runs the controllers of the
leader.
"""

from ctrlmgr.leaderelection.election import Election
from ctrlmgr.leaderelection.election_step import Timing
from ctrlmgr.leaderelection.elector import Elector
from ctrlmgr.leaderelection.lock import LeaseLock

__all__ = ["Election", "Elector", "LeaseLock", "Timing"]
