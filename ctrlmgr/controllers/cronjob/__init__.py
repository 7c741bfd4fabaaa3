"""The CronJob controller: creates Jobs on a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the CronJob controller."""

    concurrent_cron_job_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of CronJobs that are reconciled concurrently.",
            flag="--concurrent-cron-job-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="cronjob-controller",
    aliases=("cronjob",),
    does="creates the Jobs of CronJobs on schedule, and deletes finished Jobs beyond the history limits",
    watches=(Resource("batch", "cronjobs"), Resource("batch", "jobs")),
    owns=(Resource("batch", "jobs"),),
    replays=True,
    shared_kinds=(Resource("batch", "cronjobs"), Resource("batch", "jobs")),
    builder="ctrlmgr.controllers.cronjob.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
