"""Where a pod may run, as pure functions of nodes and pods: taints, affinities, and what the scheduler decides by them.

Guarantees: nothing here reads a clock, a cache or the log. The scheduler, the controllers of nodes and DaemonSets ask
the same functions, so that they never disagree about what a node takes.
"""
