"""Validates values by a schema's OpenAPI keywords, with the messages of Kubernetes' validator.

`schema_node` compiles a schema. `accept` quickly returns whether a value is valid, as most are. `explain` returns the
exact errors of an invalid value, and can ignore those of unchanged parts (`correlated_value`).

Source: kube-openapi `pkg/validation/validate`, apiextensions-apiserver `pkg/apiserver/validation`.
"""
