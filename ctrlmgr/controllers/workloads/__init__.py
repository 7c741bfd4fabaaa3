"""Code that the controllers of workloads share.

The modules in the order of a reconcile are these. `controller_ref_manager` finds the pods (or ReplicaSets, or
revisions) of an owner, `controlled_pods` reads them, `deletion_order` sorts them for deletion, `pod_control` creates
and deletes them with Events, `status_conditions` and `status` build the status. The modules `go_print` and `hashes`
generate names exactly as Kubernetes does; `controller_revisions` keeps the history of a template.
"""
