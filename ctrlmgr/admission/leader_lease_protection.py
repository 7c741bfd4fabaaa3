"""Protects the Lease of the control plane's leader election.

Guarantees: only the control plane and its administrators can acquire, release, renew or delete the Lease by which
ctrlmgr elects its leader. A client with any other rights on Leases cannot stop the controllers in this way. This is not
a plugin, so it cannot be disabled.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.api.resource import LEASES, Key, Resource
from ctrlmgr.engine.admission_attributes import Admission, Attributes, Verb
from ctrlmgr.engine.operations import Operation

MASTERS: Final = "system:masters"
_CONTROL_PLANE: Final = frozenset(("system:apiserver", "system:kube-controller-manager"))


class GuardedLeases:
    """Admission that checks the author of writes to some Leases, and leaves everything else to another admission."""

    def __init__(self, admission: Admission, *keys: Key) -> None:
        """Guard the Leases `keys`, and leave the rest to `admission`."""
        self._admission = admission
        self._keys = frozenset(keys)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether such writes are checked here or by the other admission."""
        return resource == LEASES or self._admission.handles(resource, subresource, operation)

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the other admission needs the object; this one needs only its name and author."""
        return self._admission.wants_object(attributes)

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Run the other admission's mutating half."""
        return self._admission.admit(attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Raise `Forbidden` if the user may not write a guarded Lease."""
        if attributes.resource == LEASES and Key(attributes.namespace, attributes.name) in self._keys:
            user, groups = attributes.requester.user, attributes.requester.groups
            if MASTERS not in groups and user not in _CONTROL_PLANE:
                raise attributes.forbidden("this Lease elects the leader of the control plane")
        return self._admission.validate(attributes)
