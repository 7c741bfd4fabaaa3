"""The strategy of Ingresses, which expose Services outside the cluster by host and path.

Source: Kubernetes `pkg/apis/networking/validation/validation.go`, `pkg/registry/networking/ingress/strategy.go` and
`plugin/pkg/admission/network/defaultingressclass/admission.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required, tentatively
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import ip_warnings, parse_ip, validate_legacy_ip
from ctrlmgr.kinds.apps.status import STATUS
from ctrlmgr.kinds.apps.templates import SPEC
from ctrlmgr.kinds.common_rules import each_problem

_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOWHERE = ("//", "/./", "/../", "%2f", "%2F")
_NO_END = ("/..", "/.")
_NOT_AN_IP = "must be a DNS name, not an IP address"


class IngressStrategy(Strategy):
    """The strategy of the kind networking.k8s.io/v1 Ingress."""

    has_generation = True

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec of an Ingress, and validate that a new Ingress has at most one class."""
        if ctx.subresource:
            return []
        spec = obj.get("spec") or {}
        errors = _validate_spec(spec, (ctx.old or {}).get("spec") or {})
        annotated, named = (metadata_of(obj).get("annotations") or {}).get(_CLASS), spec.get("ingressClassName")
        if ctx.old is None and None not in (annotated, named) and annotated != named:
            detail = "must match `ingressClassName` when both are specified"
            errors.append(invalid(Path("annotations").child(_CLASS), annotated, detail))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the `status` of the object."""
        if not ctx.subresource:
            return []
        existing = [each["ip"] for each in _points(old) if each.get("ip")]
        errors: list[FieldError] = []
        for index, point in enumerate(_points(new)):
            at = STATUS.child("loadBalancer", "ingress").at(index)
            if address := point.get("ip"):
                errors += validate_legacy_ip(at.child("ip"), address, existing)
            if host := point.get("hostname"):
                errors += each_problem(name_formats.dns1123_subdomain, host, at.child("hostname"))
                if parse_ip(host) is not None:
                    errors.append(invalid(at.child("hostname"), host, _NOT_AN_IP))
        return errors

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about a class in an annotation of an Ingress, and about addresses that are not in canonical form."""
        if ctx.subresource:
            path = STATUS.child("loadBalancer", "ingress")
            addresses = [(path.at(index), each.get("ip") or "") for index, each in enumerate(_points(obj))]
            return [warning for at, address in addresses for warning in ip_warnings(at, address)]
        annotated = _CLASS in (metadata_of(obj).get("annotations") or {})
        if old is not None or not annotated or (obj.get("spec") or {}).get("ingressClassName") is not None:
            return []
        return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _points(obj: Unstructured) -> list[dict[str, Any]]:
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _has_bad_wildcards(spec: Mapping[str, Any]) -> bool:
    return any("*" in (each.get("host") or "") and _validate_http(each, SPEC) for each in spec.get("rules") or ())


def _validate_spec(spec: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    """Validate the spec of an Ingress; if `before` contains invalid values, these values are allowed."""
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    errors: list[FieldError] = []
    if not rules and backend is None:
        errors.append(invalid(SPEC, spec.get("rules"), "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _validate_backend(backend, SPEC.child("defaultBackend"))
    lenient = tentatively(lambda: _has_bad_wildcards(before))
    for index, rule in enumerate(rules):
        errors += _validate_rule(rule, SPEC.child("rules").at(index), lenient=lenient)
    odd_secrets = any(_secret_problems(each) for each in before.get("tls") or ())
    for index, tls in enumerate(spec.get("tls") or ()):
        at = SPEC.child("tls").at(index)
        for number, host in enumerate(tls.get("hosts") or ()):
            errors += _validate_host(host, at.child("hosts").at(number))
        secret = tls.get("secretName") or ""
        problems = [] if odd_secrets else _secret_problems(tls)
        errors += [invalid(at.child("secretName"), secret, each) for each in problems]
    if (name := spec.get("ingressClassName")) is not None:
        errors += each_problem(name_formats.dns1123_subdomain, name, SPEC.child("ingressClassName"))
    return errors


def _secret_problems(tls: Mapping[str, Any]) -> list[str]:
    name = tls.get("secretName") or ""
    return name_formats.dns1123_subdomain(name) if name else []


def _validate_host(host: str, path: Path) -> list[FieldError]:
    check = name_formats.wildcard_dns1123_subdomain if "*" in host else name_formats.dns1123_subdomain
    return each_problem(check, host, path)


def _validate_rule(rule: Mapping[str, Any], path: Path, *, lenient: bool) -> list[FieldError]:
    host = rule.get("host") or ""
    errors: list[FieldError] = []
    if host:
        if parse_ip(host) is not None:
            errors.append(invalid(path.child("host"), host, _NOT_AN_IP))
        errors += _validate_host(host, path.child("host"))
    return errors if lenient and "*" in host else errors + _validate_http(rule, path)


def _validate_http(rule: Mapping[str, Any], path: Path) -> list[FieldError]:
    http, below = rule.get("http"), path.child("http", "paths")
    if http is None:
        return []
    paths = http.get("paths") or ()
    errors = [] if paths else [required(below)]
    for index, each in enumerate(paths):
        errors += _validate_path(each, below.at(index))
    return errors


def _validate_path(entry: Mapping[str, Any], at: Path) -> list[FieldError]:
    type_, path, below = entry.get("pathType"), entry.get("path") or "", at.child("path")
    if type_ is None:
        return [required(at.child("pathType"), "pathType must be specified")]
    errors: list[FieldError] = []
    if type_ not in _PATH_TYPES:
        errors.append(not_supported(at.child("pathType"), type_, _PATH_TYPES))
    elif not path.startswith("/") and (path or type_ != "ImplementationSpecific"):
        errors.append(invalid(below, path, "must be an absolute path"))
    if type_ in ("Exact", "Prefix"):
        errors += [invalid(below, path, f"must not contain '{each}'") for each in _NOWHERE if each in path]
        errors += [invalid(below, path, f"cannot end with '{each}'") for each in _NO_END if path.endswith(each)]
    return errors + _validate_backend(entry.get("backend") or {}, at.child("backend"))


def _validate_backend(backend: Mapping[str, Any], path: Path) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _validate_reference(resource, path.child("resource"))
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, below = service.get("name") or "", path.child("service", "name")
    errors = each_problem(name_formats.dns1123_label, name, below) if name else [required(below)]
    return errors + _validate_port(service.get("port") or {}, path)


def _validate_port(port: Mapping[str, Any], path: Path) -> list[FieldError]:
    name, number, below = port.get("name") or "", port.get("number") or 0, path.child("service", "port")
    if name and number:
        return [invalid(path, "", "cannot set both port name & port number")]
    if name:
        return each_problem(name_formats.port_name, name, below.child("name"))
    if number:
        return [invalid(below.child("number"), number, each) for each in name_formats.port_number(number)]
    return [required(path, "port name or number is required")]


def _validate_reference(reference: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if (group := reference.get("apiGroup")) is not None:
        errors += each_problem(name_formats.dns1123_subdomain, group, path.child("apiGroup"))
    for field in ("kind", "name"):
        value, below = reference.get(field) or "", path.child(field)
        errors += each_problem(name_formats.path_segment_name, value, below) if value else [required(below)]
    return errors
