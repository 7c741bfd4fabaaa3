"""Tests of kubectl's commands about workloads, with running controllers and simulated kubelets."""
