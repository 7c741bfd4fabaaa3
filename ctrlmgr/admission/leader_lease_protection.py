"""Protects the Lease of the control plane's leader election.

Guarantees: only the control plane and its administrators can write the Lease with which ctrlmgr elects its leader.
Another client with rights on Leases cannot stop the controllers by changing this Lease. The protection of the Lease is
not a plugin, so it cannot be disabled.
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.api.resource import LEASES, Key, Resource
from ctrlmgr.engine.admission_attributes import Admission, Attributes, Verb
from ctrlmgr.engine.operations import Operation

MASTERS: Final = "system:masters"
_CONTROL_PLANE: Final = frozenset(("system:apiserver", "system:kube-controller-manager"))


class GuardedLeases:
    """Admission that checks the author of writes to protected Leases.

    The wrapped admission makes all other decisions.
    """

    def __init__(self, admission: Admission, *keys: Key) -> None:
        """Protect the Leases `keys`, and call `admission` for all other decisions."""
        self._admission = admission
        self._keys = frozenset(keys)

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether this admission or the wrapped admission handles writes of this kind."""
        return resource == LEASES or self._admission.handles(resource, subresource, operation)

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether the wrapped admission needs the object of the write.

        The protection of Leases needs only the object's name and the author.
        """
        return self._admission.wants_object(attributes)

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Run the mutating admission of the wrapped admission."""
        return self._admission.admit(attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Raise `Forbidden` if the write changes a protected Lease and the user may not change it."""
        if attributes.resource == LEASES and Key(attributes.namespace, attributes.name) in self._keys:
            user, groups = attributes.requester.user, attributes.requester.groups
            if MASTERS not in groups and user not in _CONTROL_PLANE:
                raise attributes.forbidden("this Lease elects the leader of the control plane")
        return self._admission.validate(attributes)
