"""Records a Kubernetes cluster as a client: lists and watches resources, and merges all changes into one order.

Data passes these modules in order: kubeconfig, cluster, streams (one thread each), merge, redaction, and rotation of
the files.
"""
