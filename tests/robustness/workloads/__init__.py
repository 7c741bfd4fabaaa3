"""Tests of workloads while nodes are lost, pods fail, and the leading process is replaced after each of its writes.

`workload_cluster` simulates users, kubelets and time around the real controllers; `judging` then reads the log and
reports at which revision a guarantee was violated. `python -m tests.robustness.workloads --rounds 200` runs a long
test.
"""
