"""The kinds of the group `coordination.k8s.io`."""
