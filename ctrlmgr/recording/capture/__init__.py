"""Records a Kubernetes cluster as a client: lists and watches resources, and merges them into one order.

kubeconfig → cluster → streams (a thread each) → merge → redaction → rotation (the files)
"""
