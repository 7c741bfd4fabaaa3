"""What the controllers of workloads share, once.

In the order a reconcile uses it: `claims` says which pods (or ReplicaSets, or revisions) are the owner's, `pods` reads
them, `deletion_order` says which go first, `pod_control` makes and deletes them and tells of it, `conditions` and
`status` write down what came of it. `go_print` and `hashes` give names exactly as Kubernetes does, `revisions` keeps
the history of a template.
"""
