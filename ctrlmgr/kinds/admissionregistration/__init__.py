"""The kinds of the group `admissionregistration.k8s.io`."""
