"""The strategy of CronJobs: defaults and validation.

Source: Kubernetes' `pkg/apis/batch/v1/defaults.go`, `pkg/apis/batch/validation/validation.go` and
`pkg/registry/batch/cronjob/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.apps.templates import SPEC, TemplateStrategy, fill, shown_selector
from ctrlmgr.kinds.batch.cron_schedule import schedule_problem, time_zone_problems
from ctrlmgr.kinds.batch.job import default_failure_policy, job_warnings
from ctrlmgr.kinds.batch.job_spec import validate_job_spec
from ctrlmgr.kinds.common_rules import nonnegative, nonnegative_fields
from ctrlmgr.kinds.core.pod.defaults import default_template

JOB = SPEC.child("jobTemplate", "spec")
LONGEST_NAME = 52
"""The maximum length of a CronJob's name. The names of its Jobs are 10 digits longer, and must be valid DNS labels."""

_CONCURRENCY = ("Allow", "Forbid", "Replace")
_HISTORY = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")


class CronJobStrategy(TemplateStrategy):
    """The strategy of the kind batch/v1 CronJob."""

    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template and of the CronJob itself.

        The defaults of the Job itself are set only when the Job is created.
        """
        spec = obj.setdefault("spec", {})
        job = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
        default_template(job.setdefault("template", {}))
        default_failure_policy(job)
        fill(spec, {"concurrencyPolicy": "Allow", "suspend": False})
        fill(spec, {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec, and the name of a new CronJob."""
        if ctx.subresource == "status":
            return []
        spec = obj.get("spec") or {}
        before = None if ctx.old is None else ctx.old.get("spec") or {}
        errors = _validate_schedule(spec, before)
        errors += nonnegative(spec.get("startingDeadlineSeconds"), SPEC.child("startingDeadlineSeconds"))
        zone = spec.get("timeZone")
        if zone is not None and (before is None or before.get("timeZone") != zone):
            errors += [invalid(SPEC.child("timeZone"), zone, each) for each in time_zone_problems(zone)]
        if (policy := spec.get("concurrencyPolicy") or "") not in _CONCURRENCY:
            path = SPEC.child("concurrencyPolicy")
            errors.append(not_supported(path, policy, _CONCURRENCY) if policy else required(path))
        errors += _validate_job(spec.get("jobTemplate") or {})
        errors += nonnegative_fields(spec, _HISTORY, SPEC)
        name = metadata_of(obj).get("name") or ""
        if ctx.old is None and name_formats.length(name) > LONGEST_NAME:
            errors.append(invalid(Path("metadata.name"), name, f"must be no more than {LONGEST_NAME} characters"))
        return errors

    def template_warnings(self, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about the pod template of the Jobs."""
        return job_warnings(((obj.get("spec") or {}).get("jobTemplate") or {}).get("spec") or {}, JOB)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about the pod template, and about a time zone in the schedule."""
        found = super().warnings(ctx, obj, old)
        if old is None or ctx.subresource or "TZ" not in ((obj.get("spec") or {}).get("schedule") or ""):
            return found
        page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        zone = f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"
        return [*found, zone]


def _validate_schedule(spec: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[FieldError]:
    """Validate the schedule; if the old schedule contained a time zone, the new schedule may contain one."""
    schedule, path = spec.get("schedule") or "", SPEC.child("schedule")
    if not schedule:
        return [required(path)]
    problem = schedule_problem(schedule)
    errors = [invalid(path, schedule, problem)] if problem else []
    if "TZ" not in schedule:
        return errors
    if "TZ" not in ((before or {}).get("schedule") or ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(path, schedule, detail))
    elif spec.get("timeZone") is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid(path, schedule, detail))
    return errors


def _validate_job(template: Mapping[str, Any]) -> list[FieldError]:
    """Validate a JobTemplateSpec.

    The template must not have a selector, because each Job generates its own selector.
    """
    job = template.get("spec") or {}
    errors = validate_job_spec(job, JOB)
    if (selector := job.get("selector")) is not None:
        errors.append(invalid(JOB.child("selector"), shown_selector(selector), "`selector` will be auto-generated"))
    if job.get("manualSelector"):
        errors.append(not_supported(JOB.child("manualSelector"), True, ("nil", "false")))
    return errors
