"""The Job controller: runs pods to completion, and counts each pod once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the Job controller."""

    concurrent_job_syncs: Annotated[
        int,
        whole(1),
        Setting("The number of Jobs that are reconciled concurrently.", flag="--concurrent-job-syncs", metavar="COUNT"),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="job-controller",
    aliases=("job",),
    does="creates the pods of Jobs until enough have succeeded or too many have failed, and counts both",
    watches=(Resource("batch", "jobs"), PODS),
    owns=(PODS,),
    replays=True,
    shared_kinds=(Resource("batch", "jobs"), PODS),
    builder="ctrlmgr.controllers.job.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
