"""Workloads under way while nodes are lost, pods fail and the leading process is replaced after each of its writes.

`workload_cluster` plays users, kubelets and time around the real controllers; `judging` reads the log afterwards and
says at which revision a promise was broken. `python -m tests.robustness.workloads --rounds 200` plays long.
"""
