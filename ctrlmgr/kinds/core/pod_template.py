"""The strategy of PodTemplates: defaults, validation and warnings.

Source: Kubernetes' `pkg/registry/core/podtemplate/strategy.go`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.kinds.core.pod.defaults import default_template
from ctrlmgr.kinds.core.pod.validation import validate_template
from ctrlmgr.kinds.core.pod.warnings import pod_warnings


class PodTemplateStrategy(Strategy):
    """The strategy of the kind v1 PodTemplate."""

    has_generation = True
    returns_deleted = True
    revalidates = 0

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template."""
        default_template(obj.setdefault("template", {}))

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the pod template in the object."""
        return validate_template(obj.get("template") or {}, Path("template"))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for a new or updated pod template."""
        if old is not None and old.get("template") == obj.get("template"):
            return []
        return pod_warnings(obj.get("template") or {}, Path("template"))
