"""Allocates devices to claims with structured parameters, as kube-scheduler's plugin DynamicResources does.

An allocation uses these modules in order: `pools` finds the devices that a node can reach, `device_selectors` evaluates
selectors, and `allocator` searches for an assignment. `results` converts the assignment of devices to the allocations
of the claims. Before these steps, `tainting_rules` adds the taints of DeviceTaintRules to devices.
"""
