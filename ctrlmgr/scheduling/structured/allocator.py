"""Searches for devices for claims, exhaustively and with backtracking; the search ends at the first solution.

The guarantees are those of `dynamic-resource-allocation/structured`:
- Claims, their requests and the devices for a request are tried in order. Devices have the order of their pools. If a
  request has alternatives, the first alternative with a solution is used.
- A device belongs to one claim, unless it may be shared or the request has admin access. Claims never consume more of a
  shared device than its capacity, and devices never consume more of a shared counter than its value.
- A claim gets at most `MOST_RESULTS` devices.
- A taint with the effect NoSchedule or NoExecute excludes a device, unless the request tolerates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from ctrlmgr.api.quantity import parse
from ctrlmgr.scheduling.structured.constraints import Constraint
from ctrlmgr.scheduling.structured.consumable_capacity import consumed, fits
from ctrlmgr.scheduling.structured.device_selectors import AllocationError, selects
from ctrlmgr.scheduling.structured.pools import Counters, Device, DeviceID, Fields, Pool

MOST_RESULTS: Final = 32
"""The maximum number of devices of a claim (`AllocationResultsMaxSize`)."""
_ALL: Final = "All"
_EXCLUDING: Final = ("NoSchedule", "NoExecute")


class Outcome(Enum):
    """The result of a part of the search for devices."""

    FOUND = auto()
    NONE = auto()
    TOO_MANY = auto()
    """The search failed because a claim would need more than `MOST_RESULTS` devices."""


@dataclass(frozen=True)
class Claim:
    """A claim for which devices are searched."""

    name: str
    """`namespace/name`."""
    spec: Fields

    @property
    def devices(self) -> Fields:
        """The DeviceClaim in the spec of the claim."""
        found: Fields = self.spec.get("devices") or {}
        return found


@dataclass
class UsedDevices:
    """The devices that are allocated to other claims."""

    devices: dict[DeviceID, int] = field(default_factory=dict)
    """For each device, the number of claims to which the whole device is allocated."""
    portions: dict[DeviceID, dict[str, int]] = field(default_factory=dict)
    """For each shared device, the capacities that claims consume, in billionths."""
    sharing: dict[DeviceID, int] = field(default_factory=dict)
    """For each device, the number of claims to which a part of the device is allocated."""

    def add(self, device: DeviceID, portions: Mapping[str, int] | None, sign: int) -> None:
        """Add (1) or remove (-1) the allocation of a device to a claim.

        `portions` are the consumed capacities of a shared device.
        """
        counts = self.devices if portions is None else self.sharing
        counts[device] = counts.get(device, 0) + sign
        held = self.portions.setdefault(device, {}) if portions else {}
        for name, amount in (portions or {}).items():
            held[name] = held.get(name, 0) + sign * amount
        if not counts[device]:
            del counts[device]
            if portions is not None:
                self.portions.pop(device, None)

    def has(self, device: DeviceID) -> bool:
        """Return whether a device, or a part of it, is allocated to a claim."""
        return device in self.devices or device in self.sharing


@dataclass(frozen=True)
class ChosenDevice:
    """A device that was chosen for a request."""

    request: str
    """The name of the request: `REQUEST` or `REQUEST/ALTERNATIVE`."""
    fields: Fields
    """The fields of the request for which the device was chosen, or of the chosen alternative of the request."""
    device: Device
    portions: Mapping[str, int] | None = None
    """The capacities of a shared device that the request consumes, in billionths."""


@dataclass
class _Request:
    """A request or one of its alternatives; `candidates` contains the devices that match its selectors."""

    name: str
    fields: Fields
    class_: Fields
    """The DeviceClass."""
    count: int = 0
    is_all: bool = False
    candidates: Sequence[Device] | None = None

    @property
    def has_admin_access(self) -> bool:
        return bool(self.fields.get("adminAccess"))

    @property
    def portions(self) -> dict[str, int]:
        requests = (self.fields.get("capacity") or {}).get("requests") or {}
        return {name: parse(amount) for name, amount in requests.items()}

    def tolerates(self, device: Device) -> bool:
        return all(
            each["effect"] not in _EXCLUDING
            or any(tolerates(one, each) for one in self.fields.get("tolerations") or ())
            for each in device.fields.get("taints") or ()
        )


@dataclass
class Solution:
    """The chosen devices of each claim, and the device class of each request of the claim, by the request's name."""

    chosen: list[list[ChosenDevice]]
    classes: list[dict[str, Fields]]


def tolerates(toleration: Fields, taint: Fields) -> bool:
    """Return whether a toleration matches a taint of a device (`ToleratesTaint`)."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return operator == "Exists" or (operator == "Equal" and same)


def allocate(
    pools: Sequence[Pool], claims: Sequence[Claim], classes: Callable[[str], Fields | None], taken: UsedDevices
) -> Solution | None:
    """Return devices from `pools` for claims; None if there is no solution.

    Raises `AllocationError` if a claim is invalid. `classes` returns a DeviceClass, given its name.
    """
    search = _Search(pools, claims, classes, taken)
    if search.claim(0) is Outcome.FOUND:
        return search.solution()
    if any(each.is_invalid for each in pools):
        raise InvalidPoolsError("invalid resource pools were encountered")
    return None


class InvalidPoolsError(AllocationError):
    """The node has invalid pools, and its valid pools do not suffice; another node may be suitable."""


class _Search:
    """One search. Its methods return whether the remaining claims can be allocated.

    If the claims can be allocated, the methods store the chosen devices.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        claims: Sequence[Claim],
        classes: Callable[[str], Fields | None],
        taken: UsedDevices,
    ) -> None:
        self._pools = pools
        self._usable = [
            each for pool in pools if not pool.is_incomplete and not pool.is_invalid for each in pool.devices
        ]
        self._claims, self._classes, self._taken = claims, classes, taken
        self._requests = [[*self._alternatives(claim)] for claim in claims]
        self._constraints = [[Constraint(each) for each in claim.devices.get("constraints") or ()] for claim in claims]
        self._chosen: list[list[ChosenDevice]] = [[] for _ in claims]
        self._selected: list[dict[int, _Request]] = [{} for _ in claims]
        # For each device: the number of claims to which this search allocates it, and the portions that they consume.
        self._claimed: dict[DeviceID, list[int]] = {}
        self._portions: dict[DeviceID, list[Mapping[str, int]]] = {}
        self._counters = {(pool.driver, pool.name): _available(pool, taken) for pool in pools if pool.counters}
        for number, claim in enumerate(claims):
            self._check_size(number, claim)

    def solution(self) -> Solution:
        """Return the choices for all claims."""
        named = [{each.name: each.class_ for each in selected.values()} for selected in self._selected]
        return Solution(self._chosen, named)

    # Requests

    def _alternatives(self, claim: Claim) -> Iterator[list[_Request]]:
        for each in claim.devices.get("requests") or ():
            if each.get("exactly") is not None:
                yield [self._request(claim, each["name"], each["exactly"])]
            else:
                alternatives = each.get("firstAvailable") or ()
                yield [self._request(claim, f"{each['name']}/{one['name']}", one) for one in alternatives]

    def _request(self, claim: Claim, name: str, fields: Fields) -> _Request:
        where = f"claim {claim.name}, request {name.rpartition('/')[2]}"
        class_ = self._classes(fields.get("deviceClassName") or "")
        if class_ is None:
            missing = f'deviceclass.resource.k8s.io "{fields.get("deviceClassName")}" not found'
            raise AllocationError(
                f"{where}: could not retrieve device class {fields.get('deviceClassName')}: {missing}"
            )
        request = _Request(name, fields, class_, int(fields.get("count") or 0))
        if fields.get("allocationMode") == _ALL:
            request.is_all = True
            self._check_pools(where)
            request.candidates = [
                each
                for each in self._usable
                if self._is_selectable(claim, request, each)
                and consumed(request.portions, _capacities(each)) is not None
            ]
            request.count = len(request.candidates)
        return request

    def _check_pools(self, where: str) -> None:
        for pool in self._pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                which = f"resource pool {pool.driver}/{pool.name} is currently {state}"
                raise AllocationError(f"{where}: asks for all devices, but {which}")

    def _check_size(self, number: int, claim: Claim) -> None:
        least = sum(min(each.count for each in alternatives) for alternatives in self._requests[number])
        if least > MOST_RESULTS:
            size = f"number of requested devices {least} exceeds the claim limit of {MOST_RESULTS}"
            raise AllocationError(f"claim {claim.name}: {size}")

    def _candidates(self, claim: Claim, request: _Request) -> Sequence[Device]:
        """Return the candidate devices of a request, which match its selectors.

        The candidates are computed once, when the search first needs them.
        """
        if request.candidates is None:
            request.candidates = [each for each in self._usable if self._is_selectable(claim, request, each)]
        return request.candidates

    def _is_selectable(self, claim: Claim, request: _Request, device: Device) -> bool:
        class_ = request.class_
        own = (class_.get("spec") or {}).get("selectors") or ()
        if not selects(device, own, f"class {class_['metadata']['name']}"):
            return False
        return selects(device, request.fields.get("selectors") or (), f"claim {claim.name}")

    # The search

    def claim(self, number: int) -> Outcome:
        """Allocate the claims from the index `number` on."""
        return Outcome.FOUND if number == len(self._claims) else self._from(number, 0)

    def _from(self, number: int, at: int) -> Outcome:
        """Allocate the requests of a claim from the index `at` on; then allocate the later claims."""
        if at == len(self._requests[number]):
            found = self.claim(number + 1)
            # Another alternative of an earlier claim may need fewer devices.
            return Outcome.NONE if found is Outcome.TOO_MANY else found
        alternatives = self._requests[number][at]
        outcomes = []
        for each in alternatives:
            self._selected[number][at] = each
            outcomes.append(self._devices(number, at, each, 0, 0))
            if outcomes[-1] is Outcome.FOUND:
                return Outcome.FOUND
        return Outcome.TOO_MANY if all(each is Outcome.TOO_MANY for each in outcomes) else Outcome.NONE

    def _devices(self, number: int, at: int, request: _Request, having: int, start: int) -> Outcome:
        """Choose more devices for a request that has the devices `having`, beginning with the candidate `start`."""
        if request.is_all and not request.count:
            return Outcome.NONE
        if having >= request.count:
            return self._from(number, at + 1)
        if len(self._chosen[number]) + request.count - having > MOST_RESULTS:
            return Outcome.TOO_MANY
        candidates = self._candidates(self._claims[number], request)
        # The request needs all devices, so only one choice is possible.
        last = having + 1 if request.is_all else len(candidates)
        for index in range(having if request.is_all else start, last):
            undo = self._take(number, request, candidates[index])
            if undo is None:
                continue
            outcome = self._devices(number, at, request, having + 1, index + 1)
            if outcome is Outcome.FOUND:
                return outcome
            undo()
            if outcome is Outcome.TOO_MANY:
                return outcome
        return Outcome.NONE

    def _take(self, number: int, request: _Request, device: Device) -> Callable[[], None] | None:
        """Choose a device for a request, if the device is available.

        Return a function that reverts the choice; None if the device is not available.
        """
        if self._is_in_use(number, request, device) or not request.tolerates(device):
            return None
        capacities = _capacities(device)
        portions = consumed(request.portions, capacities)
        if portions is None or not fits(portions, self._used(device.id), capacities):
            return None
        needs_counters = not (device.is_shared and self._has_portions(device.id))
        if needs_counters and not self._count(device, 1):
            return None
        if not self._constrain(number, request, device):
            self._count(device, -1 if needs_counters else 0)
            return None
        self._chosen[number].append(
            ChosenDevice(request.name, request.fields, device, portions if device.is_shared else None)
        )
        if device.is_shared:
            self._portions.setdefault(device.id, []).append(portions)
        else:
            self._claimed.setdefault(device.id, []).append(number)
        return lambda: self._untake(number, request, device, -1 if needs_counters else 0)

    def _untake(self, number: int, request: _Request, device: Device, sign: int) -> None:
        self._chosen[number].pop()
        if device.is_shared:
            self._portions[device.id].pop()
        else:
            self._claimed[device.id].pop()
        for each in self._constraints[number]:
            each.remove(request.name)
        self._count(device, sign)

    def _is_in_use(self, number: int, request: _Request, device: Device) -> bool:
        claimed = self._claimed.get(device.id) or ()
        if request.has_admin_access:
            return not device.is_shared and number in claimed
        return device.id in self._taken.devices or bool(claimed)

    def _has_portions(self, device: DeviceID) -> bool:
        return device in self._taken.sharing or bool(self._portions.get(device))

    def _used(self, device: DeviceID) -> dict[str, int]:
        """Return the capacities of a device that a request consumes."""
        found = dict(self._taken.portions.get(device) or {})
        for each in self._portions.get(device) or ():
            for name, amount in each.items():
                found[name] = found.get(name, 0) + amount
        return found

    def _constrain(self, number: int, request: _Request, device: Device) -> bool:
        constraints = self._constraints[number]
        for at, each in enumerate(constraints):
            if each.add(request.name, device):
                continue
            if request.is_all:
                where = f"claim {self._claims[number].name}, request {request.name.rpartition('/')[2]}"
                which = "/".join(device.id)
                raise AllocationError(
                    f"{where}: cannot add device {which} because a claim constraint would not be satisfied"
                )
            for before in constraints[:at]:
                before.remove(request.name)
            return False
        return True

    def _count(self, device: Device, sign: int) -> bool:
        """Consume (1) or release (-1) the counters of a device.

        Return whether the counters suffice. If the counters do not suffice, they stay unchanged.
        """
        if not sign or not device.fields.get("consumesCounters"):
            return True
        left = self._counters[device.id.driver, device.id.pool]
        requested = [
            (left[name], counter, amount) for name, each in device.consumed.items() for counter, amount in each.items()
        ]
        if sign > 0 and any(held[counter] < amount for held, counter, amount in requested):
            return False
        for held, counter, amount in requested:
            held[counter] -= sign * amount
        return True


def _capacities(device: Device) -> Mapping[str, Any]:
    found: Mapping[str, Any] = device.fields.get("capacity") or {}
    return found


def _available(pool: Pool, taken: UsedDevices) -> dict[str, dict[str, int]]:
    """Return the counters of a pool, reduced by what the allocated devices consume."""
    left = {name: dict(counters) for name, counters in pool.counters.items()}
    for device in pool.all_devices:
        if taken.has(device.id):
            used: Counters = device.consumed
            for name, counters in used.items():
                for counter, amount in counters.items():
                    left[name][counter] -= amount
    return left
