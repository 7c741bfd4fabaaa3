"""Creates the leader election of a process from the settings.

Guarantees: if `leader_election.enabled` is set, every write of a controller has the fence of the leader's term. If
`leader_election.enabled` is not set, this process runs the controllers even if other processes run them too, and writes
have no fence.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from random import Random
from typing import Final

from ctrlmgr import __version__
from ctrlmgr.api.resource import LEASES, Key
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.descriptor import MANAGER
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.eventlog import Author, EventLog
from ctrlmgr.eventlog.opening import open_sessions
from ctrlmgr.eventlog.session import Sessions
from ctrlmgr.informer import Informers
from ctrlmgr.leaderelection import Election, Elector, LeaseLock, Timing
from ctrlmgr.manager import Controller, Runnable
from ctrlmgr.serve.controllers import MonitoredController
from ctrlmgr.settings import Settings

COMPONENT: Final = "leader-election"
"""The component that the Events of the leader election name."""

AUTHOR: Final = Author(MANAGER, f"ctrlmgr/{__version__}")


def leader_lease(settings: Settings) -> Key:
    """Return the key of the Lease that elects the leader."""
    return Key(settings.leader_election.resource_namespace, settings.leader_election.resource_name)


class Leadership:
    """A candidate in the leader election."""

    def __init__(self, settings: Settings, event_log: EventLog, *, clock: Clock, random: Random) -> None:
        """Create a candidate with an identity like client-go's (host and uuid).

        Raises `SettingsError` if settings are wrong.
        """
        chosen = settings.leader_election
        timing = Timing(chosen.lease_duration, chosen.renew_deadline, chosen.retry_period)
        timing.check()
        lock = LeaseLock(
            event_log,
            leader_lease(settings),
            identity=f"{socket.gethostname()}_{new_uid(random)}",
            author=AUTHOR,
            clock=clock,
            new_uid=lambda: new_uid(random),
        )
        self._sessions: Sessions = open_sessions(settings.database_url, clock=clock)
        self.elector = Elector(lock, self._sessions, timing, clock=clock)
        self._clock = clock

    def election(self, runnables: Sequence[Runnable], informers: Informers, recorder: Recorder) -> Election:
        """Return the runnable that runs `runnables` while this process leads, and records Events with `recorder`."""
        return Election(
            self.elector,
            informers.informer(LEASES),
            runnables,
            [each for each in runnables if isinstance(each, MonitoredController | Controller)],
            clock=self._clock,
            announce=lambda lease, message: recorder.event(lease, NORMAL, "LeaderElection", message),
            warn=lambda lease, message: recorder.event(lease, WARNING, "LeaseHeldByStranger", message),
        )

    def close(self) -> None:
        """End the database session by which other processes see that this process is alive."""
        self._sessions.close()
