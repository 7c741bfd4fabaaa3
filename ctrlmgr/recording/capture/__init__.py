"""Records a Kubernetes cluster as a client: lists and watches resources, and merges all changes into one order.

Data passes through these modules in this order: `cluster_client`, `streams` (one thread for each resource),
`watch_merge`, `redaction` and `rotation`.
"""
