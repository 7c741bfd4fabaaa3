"""The common code of kinds with a pod template: the template, a selector that matches it, and warnings about both.

Source: Kubernetes' `pkg/apis/apps/validation/validation.go` and the strategies in `pkg/registry/apps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.engine.validation.name_formats import dns1123_label
from ctrlmgr.kinds.common_rules import sorted_map
from ctrlmgr.kinds.core.pod.defaults import default_template
from ctrlmgr.kinds.core.pod.validation import validate_template
from ctrlmgr.kinds.core.pod.warnings import pod_warnings
from ctrlmgr.kinds.label_selectors import selector_of

SPEC = Path("spec")
TEMPLATE = SPEC.child("template")
NO_MATCH = "`selector` does not match template `labels`"
_NAMES = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


class TemplateStrategy(Strategy):
    """The strategy of a kind whose spec contains a pod template."""

    has_generation = True
    warns_of_name = True
    """Whether the names of the pods begin with the name of the object that contains the template."""

    def default(self, obj: Unstructured) -> None:
        """Set the defaults of the pod template."""
        default_template(obj.setdefault("spec", {}).setdefault("template", {}))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for the pod template if the template is new or may have changed."""
        if ctx.subresource or (old is not None and not self.may_have_changed(obj, old)):
            return []
        found: list[str] = []
        if old is None and self.warns_of_name:
            problems = dns1123_label(metadata_of(obj).get("name") or "")
            found += [f"{_NAMES}[{' '.join(problems)}]"] if problems else []
        return found + self.template_warnings(obj, old)

    def may_have_changed(self, new: Unstructured, old: Unstructured) -> bool:
        """Return whether an update needs warnings; this is the case if the update increases the generation."""
        return bool(metadata_of(new).get("generation") != (old.get("metadata") or {}).get("generation"))

    def template_warnings(self, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for the pod template of an object; `old` is the old object, None for a new object."""
        return pod_warnings((obj.get("spec") or {}).get("template") or {}, TEMPLATE)


def fill(fields: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set defaults, in place, for fields that are absent or have an empty value."""
    for field, value in values.items():
        if fields.get(field) in (None, ""):
            fields[field] = value


def fill_nil(fields: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set defaults, in place, for fields that are absent.

    Use this function for fields that are pointers in Go: for such fields, an empty string counts as set.
    """
    for field, value in values.items():
        if fields.get(field) is None:
            fields[field] = value


def validate_selector(spec: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Validate the selector of a spec; error messages contain `kind`."""
    selector, path = spec.get("selector"), SPEC.child("selector")
    if selector is None:
        return [required(path)]
    errors = validate_label_selector(selector, path)
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        errors.append(invalid(path, {}, f"empty selector is invalid for {kind}"))
    return errors


def is_selector_broken(spec: Mapping[str, Any]) -> bool:
    """Return whether the selector of a spec is invalid (`LabelSelectorAsSelector` fails).

    If the selector is missing, the result is False.
    """
    selector = spec.get("selector")
    return selector is not None and selector_of(selector) is None


def validate_match(spec: Mapping[str, Any]) -> list[FieldError]:
    """Validate that a valid selector matches the pod template's labels; a missing selector matches no labels."""
    if is_selector_broken(spec):
        return []
    selector = spec.get("selector")
    found = None if selector is None else selector_of(selector)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if found is not None and found.matches(labels or {}):
        return []
    return [invalid(TEMPLATE.child("metadata", "labels"), sorted_map(labels), NO_MATCH)]


def shown_selector(selector: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a selector for error messages, in the format in which Go prints its struct."""
    if selector is None:
        return None
    return {field: sorted_map(value) if field == "matchLabels" else value for field, value in selector.items()}


def validate_selected_template(spec: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Validate the selector of a Deployment or ReplicaSet.

    If the selector is valid, also validate the pod template.
    """
    errors = validate_selector(spec, kind)
    if is_selector_broken(spec):
        return [
            *errors,
            invalid(SPEC.child("selector"), shown_selector(spec.get("selector")), "invalid label selector"),
        ]
    return errors + validate_match(spec) + validate_eternal_template(spec, "ReplicaSet")


def validate_eternal_template(spec: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Validate a pod template whose pods must be restarted whenever they end."""
    template = spec.get("template") or {}
    return validate_template(template, TEMPLATE) + validate_runs_for_ever(template, kind)


def validate_runs_for_ever(template: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Validate that the restart policy of a pod template is Always."""
    pod, path = template.get("spec") or {}, TEMPLATE.child("spec")
    errors: list[FieldError] = []
    if (policy := pod.get("restartPolicy") or "") != "Always":
        errors.append(not_supported(path.child("restartPolicy"), policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(path.child("activeDeadlineSeconds"), detail))
    return errors


def validate_same_selector(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate that a selector has not changed."""
    after = (new.get("spec") or {}).get("selector")
    if after == (old.get("spec") or {}).get("selector"):
        return []
    return [invalid(SPEC.child("selector"), shown_selector(after), "field is immutable")]
