"""The rows of the kinds that configure a cluster: networking, storage, RBAC, admission, certificates, and the rest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ctrlmgr.api import quantity
from ctrlmgr.server.describe.tables.ages import Ages, human_duration
from ctrlmgr.server.describe.tables.printer import (
    NONE,
    UNSET,
    Fields,
    Printer,
    Row,
    age,
    at,
    joined,
    printer,
    selector_text,
)


def _aged(*cells: Callable[[Fields], Any]) -> Row:
    """Return a row of cells that look at the object alone, with its age behind."""

    def row(fields: Fields, ages: Ages) -> list[Any]:
        return [*(cell(fields) for cell in cells), age(fields, ages)]

    return row


def _text(*path: str | int, nothing: Any = "") -> Callable[[Fields], Any]:
    def cell(fields: Fields) -> Any:
        value = at(fields, *path)
        return nothing if value is None or value == "" else value

    return cell


def _length(name: str) -> Callable[[Fields], int]:
    return lambda fields: len(at(fields, *name.split(".")) or ())


def _flag(*path: str, default: bool = False) -> Callable[[Fields], bool]:
    def cell(fields: Fields) -> bool:
        value = at(fields, *path)
        return default if value is None else bool(value)

    return cell


def _ingress(fields: Fields, ages: Ages) -> list[Any]:
    hosts = [rule["host"] for rule in at(fields, "spec", "rules") or () if rule.get("host")]
    balancer = at(fields, "status", "loadBalancer", "ingress") or ()
    shown = hosts if len(hosts) <= 3 else [*hosts[:3], f" + {len(hosts) - 3} more..."]
    return [
        at(fields, "spec", "ingressClassName") or NONE,
        joined(shown, "*"),
        joined((each.get("ip") or each.get("hostname", "") for each in balancer), ""),
        "80, 443" if at(fields, "spec", "tls") else "80",
        age(fields, ages),
    ]


def _parameters(fields: Fields) -> str:
    parameters = at(fields, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def _parent(fields: Fields) -> str:
    reference = at(fields, "spec", "parentRef") or {}
    parts = [reference.get(name, "") for name in ("group", "resource", "namespace", "name")]
    resource = f"{parts[1]}.{parts[0]}" if parts[0] else parts[1]
    return "/".join(part for part in (resource, parts[2], parts[3]) if part)


def _binding(fields: Fields, ages: Ages) -> list[Any]:
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in fields.get("subjects") or ():
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        names.get(subject.get("kind", ""), []).append(name)
    role = f"{at(fields, 'roleRef', 'kind')}/{at(fields, 'roleRef', 'name')}"
    return [role, age(fields, ages), *(", ".join(each) for each in names.values())]


def _storage_class(fields: Fields, ages: Ages) -> list[Any]:
    return [
        fields.get("provisioner", ""),
        fields.get("reclaimPolicy") or "Delete",
        fields.get("volumeBindingMode") or UNSET,
        bool(fields.get("allowVolumeExpansion")),
        age(fields, ages),
    ]


def _request(fields: Fields, ages: Ages) -> list[Any]:
    met = [each.get("type") for each in at(fields, "status", "conditions") or ()]
    words = [word for word in ("Approved", "Denied", "Failed") if word in met]
    if at(fields, "status", "certificate"):
        words.append("Issued")
    seconds = at(fields, "spec", "expirationSeconds")
    return [
        age(fields, ages),
        at(fields, "spec", "signerName") or NONE,
        at(fields, "spec", "username") or "",
        NONE if seconds is None else human_duration(timedelta(seconds=seconds)),
        ",".join(words) or "Pending",
    ]


def _tokens(fields: Fields) -> str:
    return joined((each.get("audience", "") for each in at(fields, "spec", "tokenRequests") or ()), UNSET)


def _priority_level(fields: Fields, ages: Ages) -> list[Any]:
    limited = at(fields, "spec", "limited") or at(fields, "spec", "exempt") or {}
    queuing = at(fields, "spec", "limited", "limitResponse", "queuing") or {}
    sizes = [queuing.get(name, NONE) for name in ("queues", "handSize", "queueLengthLimit")]
    return [
        at(fields, "spec", "type") or "",
        limited.get("nominalConcurrencyShares", NONE),
        *sizes,
        age(fields, ages),
    ]


def _flow_schema(fields: Fields, ages: Ages) -> list[Any]:
    dangling = [each for each in at(fields, "status", "conditions") or () if each.get("type") == "Dangling"]
    return [
        at(fields, "spec", "priorityLevelConfiguration", "name") or NONE,
        at(fields, "spec", "matchingPrecedence") or 0,
        at(fields, "spec", "distinguisherMethod", "type") or NONE,
        age(fields, ages),
        dangling[0].get("status", "?") if dangling else "?",
    ]


def _claim_state(fields: Fields) -> str:
    states = ["allocated"] if at(fields, "status", "allocation") else []
    states += ["reserved"] if at(fields, "status", "reservedFor") else []
    states = ["deleted", *states] if at(fields, "metadata", "deletionTimestamp") else states
    return joined(states, "pending")


def _api_service(fields: Fields, ages: Ages) -> list[Any]:
    service = at(fields, "spec", "service")
    available = [each for each in at(fields, "status", "conditions") or () if each.get("type") == "Available"]
    text = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    status = available[0].get("status", "Unknown") if available else "Unknown"
    if status != "True" and available:
        status = f"{status} ({available[0].get('reason', '')})"
    return [text, status, age(fields, ages)]


_BINDING = "Role|Age|+Users|+Groups|+ServiceAccounts"

PRINTERS: dict[str, Printer] = {
    "networking.k8s.io/v1/Ingress": printer("Class|Hosts|Address|Ports|Age", _ingress),
    "networking.k8s.io/v1/IngressClass": printer(
        "Controller|Parameters|Age", _aged(_text("spec", "controller"), _parameters)
    ),
    "networking.k8s.io/v1/NetworkPolicy": printer(
        "Pod-Selector|Age", _aged(lambda fields: selector_text(at(fields, "spec", "podSelector")))
    ),
    "networking.k8s.io/v1/IPAddress": printer("ParentRef|Age", _aged(_parent)),
    "networking.k8s.io/v1/ServiceCIDR": printer(
        "CIDRs|Age", _aged(lambda fields: ",".join(at(fields, "spec", "cidrs") or ()))
    ),
    "rbac.authorization.k8s.io/v1/RoleBinding": printer(_BINDING, _binding),
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": printer(_BINDING, _binding),
    "storage.k8s.io/v1/StorageClass": printer(
        "Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age", _storage_class
    ),
    "storage.k8s.io/v1/VolumeAttributesClass": printer("DriverName|Age", _aged(_text("driverName"))),
    "storage.k8s.io/v1/VolumeAttachment": printer(
        "Attacher|PV|Node|Attached:boolean|Age",
        _aged(
            _text("spec", "attacher"),
            _text("spec", "source", "persistentVolumeName"),
            _text("spec", "nodeName"),
            _flag("status", "attached"),
        ),
    ),
    "storage.k8s.io/v1/CSINode": printer("Drivers:integer|Age", _aged(_length("spec.drivers"))),
    "storage.k8s.io/v1/CSIDriver": printer(
        "AttachRequired:boolean|PodInfoOnMount:boolean|StorageCapacity:boolean|TokenRequests|RequiresRepublish:boolean"
        "|Modes|Age",
        _aged(
            _flag("spec", "attachRequired", default=True),
            _flag("spec", "podInfoOnMount"),
            _flag("spec", "storageCapacity"),
            _tokens,
            _flag("spec", "requiresRepublish"),
            lambda fields: joined(at(fields, "spec", "volumeLifecycleModes")),
        ),
    ),
    "storage.k8s.io/v1/CSIStorageCapacity": printer(
        "StorageClassName|Capacity",
        lambda fields, ages: [
            fields.get("storageClassName", ""),
            quantity.canonical(fields["capacity"]) if fields.get("capacity") else UNSET,
        ],
    ),
    "scheduling.k8s.io/v1/PriorityClass": printer(
        "Value|Global-Default|Age|PreemptionPolicy",
        lambda fields, ages: [
            fields.get("value", 0),
            bool(fields.get("globalDefault")),
            age(fields, ages),
            fields.get("preemptionPolicy") or "PreemptLowerPriority",
        ],
    ),
    "node.k8s.io/v1/RuntimeClass": printer("Handler|Age", _aged(_text("handler"))),
    "certificates.k8s.io/v1/CertificateSigningRequest": printer(
        "Age|SignerName|Requestor|RequestedDuration|Condition", _request
    ),
    "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": printer(
        "Webhooks:integer|Age", _aged(_length("webhooks"))
    ),
    "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": printer(
        "Webhooks:integer|Age", _aged(_length("webhooks"))
    ),
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": printer(
        "Validations:integer|ParamKind|Age",
        _aged(
            _length("spec.validations"),
            lambda fields: (
                f"{at(fields, 'spec', 'paramKind', 'apiVersion')}/{at(fields, 'spec', 'paramKind', 'kind')}"
                if at(fields, "spec", "paramKind")
                else UNSET
            ),
        ),
    ),
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": printer(
        "PolicyName|ParamRef|Age", _aged(_text("spec", "policyName"), _text("spec", "paramRef", "name", nothing=UNSET))
    ),
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy": printer(
        "Mutations:integer|ParamKind|Age",
        _aged(_length("spec.mutations"), _text("spec", "paramKind", "kind", nothing=UNSET)),
    ),
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding": printer(
        "PolicyName|ParamRef|Age", _aged(_text("spec", "policyName"), _text("spec", "paramRef", "name", nothing=UNSET))
    ),
    "flowcontrol.apiserver.k8s.io/v1/FlowSchema": printer(
        "PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL", _flow_schema
    ),
    "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": printer(
        "Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age", _priority_level
    ),
    "resource.k8s.io/v1/DeviceClass": printer("Age", _aged()),
    "resource.k8s.io/v1/ResourceClaim": printer("State|Age", _aged(_claim_state)),
    "resource.k8s.io/v1/ResourceClaimTemplate": printer("Age", _aged()),
    "resource.k8s.io/v1/ResourceSlice": printer(
        "Node|Driver|Pool|Age",
        _aged(
            _text("spec", "nodeName", nothing=UNSET), _text("spec", "driver"), _text("spec", "pool", "name", nothing="")
        ),
    ),
    "apiregistration.k8s.io/v1/APIService": printer("Service|Available|Age", _api_service),
}
