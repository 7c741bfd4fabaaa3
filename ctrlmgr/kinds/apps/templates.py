"""What kinds that make pods have in common: a template, a selector that fits it, and warnings about both.

Rules come from Kubernetes' `pkg/apis/apps/validation/validation.go` and the strategies in `pkg/registry/apps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.labels import validate_label_selector
from ctrlmgr.engine.validation.names import dns1123_label
from ctrlmgr.kinds.core.pod.defaults import default_template
from ctrlmgr.kinds.core.pod.validation import validate_template
from ctrlmgr.kinds.core.pod.warnings import pod_warnings
from ctrlmgr.kinds.label_selectors import selector_of
from ctrlmgr.kinds.rules import sorted_map

SPEC = Path("spec")
TEMPLATE = SPEC.child("template")
NO_MATCH = "`selector` does not match template `labels`"
_NAMES = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


class TemplateStrategy(Strategy):
    """A kind whose spec has a template of pods."""

    has_generation = True
    warns_of_name = True
    """Whether its name becomes part of its pods' names."""

    def default(self, obj: Unstructured) -> None:
        """Default the template."""
        default_template(obj.setdefault("spec", {}).setdefault("template", {}))

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn of the template when it is new or may have changed."""
        if ctx.subresource or (old is not None and not self.may_have_changed(obj, old)):
            return []
        found: list[str] = []
        if old is None and self.warns_of_name:
            problems = dns1123_label(metadata_of(obj).get("name") or "")
            found += [f"{_NAMES}[{' '.join(problems)}]"] if problems else []
        return found + self.template_warnings(obj, old)

    def may_have_changed(self, new: Unstructured, old: Unstructured) -> bool:
        """Whether an update is one to warn of: one that counts as a change of what is desired."""
        return bool(metadata_of(new).get("generation") != (old.get("metadata") or {}).get("generation"))

    def template_warnings(self, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for the template of a new object, or of one that was `old` before."""
        return pod_warnings((obj.get("spec") or {}).get("template") or {}, TEMPLATE)


def fill(fields: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set what is absent or empty, in place."""
    for field, value in values.items():
        if fields.get(field) in (None, ""):
            fields[field] = value


def fill_nil(fields: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Set what is absent, in place: fields to which Go has a pointer, which may be empty texts."""
    for field, value in values.items():
        if fields.get(field) is None:
            fields[field] = value


def validate_selector(spec: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Check a spec's selector as such; `kind` is for messages."""
    selector, path = spec.get("selector"), SPEC.child("selector")
    if selector is None:
        return [required(path)]
    errors = validate_label_selector(selector, path)
    if not (selector.get("matchLabels") or selector.get("matchExpressions")):
        errors.append(invalid(path, {}, f"empty selector is invalid for {kind}"))
    return errors


def is_selector_broken(spec: Mapping[str, Any]) -> bool:
    """Whether a spec's selector cannot be read (`LabelSelectorAsSelector` fails): no selector selects nothing."""
    selector = spec.get("selector")
    return selector is not None and selector_of(selector) is None


def validate_match(spec: Mapping[str, Any]) -> list[FieldError]:
    """Check that a template's labels are what the selector selects, if that can be read; none selects nothing."""
    if is_selector_broken(spec):
        return []
    selector = spec.get("selector")
    found = None if selector is None else selector_of(selector)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if found is not None and found.matches(labels or {}):
        return []
    return [invalid(TEMPLATE.child("metadata", "labels"), sorted_map(labels), NO_MATCH)]


def shown_selector(selector: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a selector as Go shows it in messages."""
    if selector is None:
        return None
    return {field: sorted_map(value) if field == "matchLabels" else value for field, value in selector.items()}


def validate_selected_template(spec: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Check the selector of a Deployment or ReplicaSet, and its template, if the selector can be read."""
    errors = validate_selector(spec, kind)
    if is_selector_broken(spec):
        return [
            *errors,
            invalid(SPEC.child("selector"), shown_selector(spec.get("selector")), "invalid label selector"),
        ]
    return errors + validate_match(spec) + validate_eternal_template(spec, "ReplicaSet")


def validate_eternal_template(spec: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Check a template of pods that are to run for ever."""
    template = spec.get("template") or {}
    return validate_template(template, TEMPLATE) + validate_runs_for_ever(template, kind)


def validate_runs_for_ever(template: Mapping[str, Any], kind: str) -> list[FieldError]:
    """Check that a template's pods are restarted whenever they end."""
    pod, path = template.get("spec") or {}, TEMPLATE.child("spec")
    errors: list[FieldError] = []
    if (policy := pod.get("restartPolicy") or "") != "Always":
        errors.append(not_supported(path.child("restartPolicy"), policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(path.child("activeDeadlineSeconds"), detail))
    return errors


def validate_same_selector(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Check that a selector has not changed."""
    after = (new.get("spec") or {}).get("selector")
    if after == (old.get("spec") or {}).get("selector"):
        return []
    return [invalid(SPEC.child("selector"), shown_selector(after), "field is immutable")]
