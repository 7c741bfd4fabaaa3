"""The declarations of the kinds of `batch`."""

from __future__ import annotations

from ctrlmgr.kinds.batch import printers
from ctrlmgr.kinds.batch.cron_job import CronJobStrategy
from ctrlmgr.kinds.batch.job import JobStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

KINDS = (
    Declaration("batch/v1", "CronJob", strategy=CronJobStrategy(), printer=printers.CRON_JOB),
    Declaration("batch/v1", "Job", strategy=JobStrategy(), printer=printers.JOB),
)
