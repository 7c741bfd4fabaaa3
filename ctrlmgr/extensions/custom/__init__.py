"""Custom kinds: creates the engine's `Kind`s from CustomResourceDefinitions.

A definition is processed in this order: `custom_kind_registration` updates the kinds of a server, and `custom_kind`
creates each `Kind`. A kind's `custom_codec` reads and writes its objects, `custom_shape` describes ownership and
merging of fields, and `custom_strategy` handles writes. `custom_conversion` and `conversion_webhook` convert between
versions, `custom_scaling` is for the scale subresource, and `openapi` for OpenAPI documents.
"""
