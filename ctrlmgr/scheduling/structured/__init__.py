"""The allocation of devices to claims with structured parameters, as in kube-scheduler's plugin DynamicResources.

The modules in the order of an allocation: `pools` finds the devices that a node can reach, `device_selectors` evaluates
selectors, and `allocator` searches for an assignment. `results` converts the assignment to the allocations of the
claims.
"""
