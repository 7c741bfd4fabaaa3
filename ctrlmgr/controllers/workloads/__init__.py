"""Code that the controllers of workloads share.

In the order of a reconcile: `claims` finds the pods (or ReplicaSets, or revisions) of an owner, `pods` reads them,
`deletion_order` sorts them for deletion, `pod_control` creates and deletes them with Events, `conditions` and `status`
build the status. `go_print` and `hashes` generate names exactly as Kubernetes does; `revisions` keeps the history of a
template.
"""
