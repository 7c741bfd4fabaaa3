"""Signs `kube-public/cluster-info` with bootstrap tokens, so that nodes which have one can trust it."""
