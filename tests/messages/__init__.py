"""Compares the messages in this package's answers with the messages in Kubernetes' source.

    python -m tests.messages                prints each message of ours that is in neither list, with its place
    python -m tests.messages DIRECTORY...   reads the messages in Go sources again and writes `kubernetes.txt`

A rule that Kubernetes does not have would refuse objects that Kubernetes accepts. Such a rule has its own message.
Therefore each message of ours is looked up in `kubernetes.txt`, which has the messages in the source of Kubernetes
1.36.2 and of the libraries that create its answers. A message that is not there must be in `own.toml` with a reason, or
is removed together with its rule.

The directories to read are `pkg/{api,apis,registry,kubeapiserver,quota,util,serviceaccount,auth,fieldpath}` and
`plugin/pkg` of a checkout of Kubernetes, its staging repositories apimachinery, apiserver, apiextensions-apiserver,
kube-aggregator, pod-security-admission and component-helpers, and the libraries that `kubernetes.txt` names at its top.

This package is in `tests/` and not in `scripts/` because `tests/messages/test_messages.py` runs it with every other
test.
"""
