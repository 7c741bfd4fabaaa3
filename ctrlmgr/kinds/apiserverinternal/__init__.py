"""The kinds of the API group `internal.apiserver.k8s.io`."""
