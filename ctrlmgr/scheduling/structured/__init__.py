"""The allocation of devices to claims with structured parameters, as in kube-scheduler's plugin DynamicResources.

In the order of an allocation: `pools` finds the devices that a node can reach, `device_selectors` evaluates selectors,
`allocator` searches an assignment, and `results` writes it as the claims' allocations.
"""
