"""Validates values by a schema's OpenAPI keywords, with the messages of Kubernetes' validator.

The module `schema_node` compiles a schema. The module `fast_validator` quickly returns whether a value is valid, which
is the case for most values. The module `error_validator` returns the exact errors of an invalid value, and can ignore
errors of unchanged parts (`correlated_value`).

Source: kube-openapi `pkg/validation/validate`, apiextensions-apiserver `pkg/apiserver/validation`.
"""
