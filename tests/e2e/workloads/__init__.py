"""kubectl's commands about workloads, on a server whose controllers of workloads run; kubelets are played."""
