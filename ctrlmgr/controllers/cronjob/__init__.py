"""The CronJob controller: creates Jobs on a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the CronJob controller."""

    concurrent_cron_job_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "How many CronJobs are reconciled at the same time.", flag="--concurrent-cron-job-syncs", metavar="COUNT"
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="cronjob-controller",
    aliases=("cronjob",),
    does="CronJobs: their Jobs, each at its time, and how many finished ones are kept",
    watches=(Resource("batch", "cronjobs"), Resource("batch", "jobs")),
    owns=(Resource("batch", "jobs"),),
    replays=True,
    shared_kinds=(Resource("batch", "cronjobs"), Resource("batch", "jobs")),
    builder="ctrlmgr.controllers.cronjob.controller:build",
    options=Options,
)
"""The declaration of this controller."""
