"""The kinds of the API group `storagemigration.k8s.io`."""
