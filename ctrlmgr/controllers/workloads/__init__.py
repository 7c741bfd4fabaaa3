"""Code that the controllers of workloads share.

A reconcile uses the modules in this order: `controller_ref_manager` finds the pods, ReplicaSets or revisions of an
owner. The module `controlled_pods` reads the pods. The module `deletion_order` sorts them for deletion. The module
`pod_control` creates and deletes them, and records Events. The modules `status_conditions` and `status` build the
status. The modules `go_print` and `hashes` generate the same names as Kubernetes. The module `controller_revisions`
keeps the history of a template.
"""
