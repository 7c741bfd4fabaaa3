"""Validates values by a schema's OpenAPI keywords, with the messages of Kubernetes' validator.

`schema_node` compiles a schema. `fast_validator` quickly returns whether a value is valid, which most values are.
`error_validator` returns the exact errors of an invalid value, and can ignore errors of unchanged parts
(`correlated_value`).

Source: kube-openapi `pkg/validation/validate`, apiextensions-apiserver `pkg/apiserver/validation`.
"""
