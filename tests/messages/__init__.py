"""Compares the error messages in ctrlmgr's responses with the messages in Kubernetes' source.

    python -m tests.messages                prints each message of ours that is in neither list, with its place
    python -m tests.messages DIRECTORY...   reads the messages in Go sources again and writes `kubernetes.txt`

A validation rule that Kubernetes does not have would refuse objects that Kubernetes accepts. Such a rule can be
recognized by a message that Kubernetes does not have. Therefore each of our messages is looked up in `kubernetes.txt`,
which contains the messages in the source of Kubernetes 1.36.2 and of the libraries that create Kubernetes' responses. A
message that `kubernetes.txt` does not contain must be in `own.toml` with a reason, or must be removed together with its
rule.

The extracted directories are `pkg/{api,apis,registry,kubeapiserver,quota,util,serviceaccount,auth,fieldpath}` and
`plugin/pkg` of a checkout of Kubernetes, its staging repositories apimachinery, apiserver, apiextensions-apiserver,
kube-aggregator, pod-security-admission and component-helpers, and the libraries that `kubernetes.txt` names at its top.

This package is in `tests/` and not in `scripts/`, because `tests/messages/test_messages.py` runs it together with the
other tests.
"""
