"""Converts an assignment of devices to the allocations of claims: devices, configurations, and suitable nodes.

Source: `Allocate` and `createNodeSelector` in `dynamic-resource-allocation/structured`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ctrlmgr.api.quantity import WHOLE, parse, plus
from ctrlmgr.scheduling.structured.allocator import ChosenDevice, Claim, Solution
from ctrlmgr.scheduling.structured.pools import Fields


def allocations(
    claims: Sequence[Claim], solution: Solution, node: str, new_id: Callable[[], str]
) -> list[dict[str, Any]]:
    """Return an AllocationResult for each claim, for a pod on `node`.

    `new_id` returns an id for a portion of a device.
    """
    parts = zip(claims, solution.chosen, solution.classes, strict=True)
    return [_allocation(*part, node, new_id) for part in parts]


def _allocation(
    claim: Claim, chosen: Sequence[ChosenDevice], classes: Mapping[str, Fields], node: str, new_id: Callable[[], str]
) -> dict[str, Any]:
    devices: dict[str, Any] = {"results": [_result(each, new_id) for each in chosen]}
    configurations = [*_of_classes(classes), *_of_claim(claim, classes)]
    if configurations:
        devices["config"] = configurations
    selector = node_selector(chosen, node)
    return {"devices": devices, **({} if selector is None else {"nodeSelector": selector})}


def _result(chosen: ChosenDevice, new_id: Callable[[], str]) -> dict[str, Any]:
    driver, pool, name = chosen.device.id
    result: dict[str, Any] = {"request": chosen.request, "driver": driver, "pool": pool, "device": name}
    if chosen.fields.get("adminAccess"):
        result["adminAccess"] = True
    if chosen.fields.get("tolerations"):
        result["tolerations"] = chosen.fields["tolerations"]
    for each in ("bindingConditions", "bindingFailureConditions"):
        if chosen.device.fields.get(each):
            result[each] = chosen.device.fields[each]
    if chosen.portions is not None:
        result["shareID"] = new_id()
        if chosen.portions:
            capacities = chosen.device.fields["capacity"]
            requests = (chosen.fields.get("capacity") or {}).get("requests") or {}
            result["consumedCapacity"] = {
                name: _text(amount, requests.get(name), capacities[name]) for name, amount in chosen.portions.items()
            }
    return result


def _text(amount: int, requested: str | None, capacity: Fields) -> str:
    """Return an amount of capacity in billionths as a quantity.

    The result has the notation of the request or of the device's capacity, if one of them has the amount. A rounded
    amount gets a canonical notation.
    """
    policy = capacity.get("requestPolicy") or {}
    bounds = policy.get("validRange") or {}
    given = (requested, policy.get("default"), capacity["value"], bounds.get("min"), *(policy.get("validValues") or ()))
    same = (each for each in given if each is not None and parse(each) == amount)
    found: str | None = next(same, None)
    if found is not None:
        return found
    number = amount // WHOLE
    return plus(f"{number // 1024}Ki", "0") if not number % 1024 else str(number)


def _of_classes(classes: Mapping[str, Fields]) -> Iterator[dict[str, Any]]:
    """Yield each configuration of a device class once, with all requests that use the class."""
    requests: dict[str, list[str]] = {}
    by_name: dict[str, Fields] = {}
    for request, class_ in classes.items():
        name = class_["metadata"]["name"]
        requests.setdefault(name, []).append(request)
        by_name[name] = class_
    for name, class_ in by_name.items():
        for each in (class_.get("spec") or {}).get("config") or ():
            yield {"source": "FromClass", "requests": requests[name], **each}


def _of_claim(claim: Claim, classes: Mapping[str, Fields]) -> Iterator[dict[str, Any]]:
    """Yield the claim's configurations.

    A configuration that names requests is yielded once for each of these requests.
    """
    for each in claim.devices.get("config") or ():
        named = each.get("requests") or ()
        if not named:
            yield {"source": "FromClaim", **each}
        for request in classes if named else ():
            if request in named or request.partition("/")[0] in named:
                yield {"source": "FromClaim", **each}


def node_selector(chosen: Sequence[ChosenDevice], node: str) -> dict[str, Any] | None:
    """Return the nodes that can reach all devices; None means every node."""
    term: dict[str, list[Any]] = {}
    for each in chosen:
        spec = each.device.fields if each.device.spec.get("perDeviceNodeSelection") else each.device.spec
        if spec.get("nodeName") or each.device.fields.get("bindsToNode"):
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [field]}]}
        for given in (spec.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            for kind in ("matchFields", "matchExpressions"):
                requirements = term.setdefault(kind, [])
                requirements += [one for one in given.get(kind) or () if one not in requirements]
    term = {kind: requirements for kind, requirements in term.items() if requirements}
    return {"nodeSelectorTerms": [term]} if term else None
