"""Scheduling as pure functions of nodes and pods: taints, affinities, and the scheduler's decision.

Guarantees: no function reads a clock, a cache or the log. The scheduler and the controllers of nodes and DaemonSets use
the same functions, so their decisions about a node never contradict.
"""
