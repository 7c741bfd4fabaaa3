"""Records a Kubernetes cluster as a client: lists and watches resources, and merges all changes into one order.

The data flow: kubeconfig → cluster → streams (one thread each) → merge → redaction → rotation (of the files).
"""
