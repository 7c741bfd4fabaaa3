"""Implements scheduling as pure functions of nodes and pods: taints, affinities, and the scheduler's decisions.

Guarantees: no function reads a clock, a cache or the log. The scheduler and the controllers of nodes and DaemonSets use
the same functions, so that their decisions about a node agree with each other.
"""
