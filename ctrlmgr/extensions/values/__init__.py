"""Validation of values by a schema's OpenAPI keywords, with the messages of Kubernetes' validator.

`node` reads a schema; `accept` says quickly whether a value is valid, which most are; `explain` says exactly what is
wrong with one that is not, and lets old mistakes stay (`correlation`).

Source: kube-openapi `pkg/validation/validate`, apiextensions-apiserver `pkg/apiserver/validation`.
"""
