"""Recording a Kubernetes cluster from outside, as any client may: list and watch, merged into one order.

kubeconfig → cluster → streams (a thread each) → merge → redaction → rotation (the files)
"""
