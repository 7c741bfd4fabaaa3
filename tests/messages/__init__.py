"""Compares the texts that this package answers with to those in Kubernetes' source.

    python -m tests.messages                prints each text of ours that neither list has, with its place
    python -m tests.messages DIRECTORY...   reads the texts of Go sources anew and writes `kubernetes.txt`

A rule that only this package has refuses what Kubernetes takes. Such a rule has a message of its own, so each message
of ours is looked up in `kubernetes.txt`: the texts in the source of Kubernetes 1.36.2 and of the libraries that make
its answers. What is not there is listed in `own.toml` with the reason for it, or goes together with its rule.

The directories to read are `pkg/{api,apis,registry,kubeapiserver,quota,util,serviceaccount,auth,fieldpath}` and
`plugin/pkg` of a checkout of Kubernetes, its staging repositories apimachinery, apiserver, apiextensions-apiserver,
kube-aggregator, pod-security-admission and component-helpers, and the libraries that `kubernetes.txt` names at its top.

This is in `tests/` and not in `scripts/` because `tests/messages/test_messages.py` runs it with every other test.
"""
