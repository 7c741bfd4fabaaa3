"""The Lease of the control plane's own election: written by the control plane and its administrators, by no one else.

Guarantees: whatever rights a client has been given on Leases, it can neither take, give back, lengthen nor delete the
one by which ctrlmgr elects its leader, since all controllers stop when that changes hands. This is no plugin: it cannot
be switched off.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.api.resource import LEASES, Key, Resource
from ctrlmgr.engine.attributes import Admission, Attributes, Verb
from ctrlmgr.engine.operations import Operation

MASTERS: Final = "system:masters"
_CONTROL_PLANE: Final = frozenset(("system:apiserver", "system:kube-controller-manager"))


class GuardedLeases:
    """Admission that asks who writes one Lease, before all that another admission has to say."""

    def __init__(self, admission: Admission, *keys: Key) -> None:
        """Guard the Leases `keys`, and leave the rest to `admission`."""
        self._admission = admission
        self._keys = frozenset(keys)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Whether anything is to be asked of such writes."""
        return resource == LEASES or self._admission.handles(resource, subresource, operation)

    def wants_object(self, attributes: Attributes) -> bool:
        """Whether the other admission needs the object; this asks only for its name, and who writes it."""
        return self._admission.wants_object(attributes)

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Have the object changed."""
        return self._admission.admit(attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Refuse with `Forbidden` what is not the caller's to write."""
        if attributes.resource == LEASES and Key(attributes.namespace, attributes.name) in self._keys:
            user, groups = attributes.requester.user, attributes.requester.groups
            if MASTERS not in groups and user not in _CONTROL_PLANE:
                raise attributes.forbidden("this Lease elects the leader of the control plane")
        return self._admission.validate(attributes)
