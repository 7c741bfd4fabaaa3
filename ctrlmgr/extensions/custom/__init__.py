"""Custom kinds: creates the engine's `Kind`s from CustomResourceDefinitions.

A CustomResourceDefinition is processed in this order: `custom_kind_registration` updates the kinds of a server, and
`custom_kind` creates each `Kind`. The module `custom_codec` reads and writes the objects of a kind, `custom_merge_type`
describes ownership and merging of fields, and `custom_strategy` handles writes. The modules `custom_conversion` and
`conversion_webhook` convert between versions, `custom_scaling` handles the scale subresource, and `openapi` creates
OpenAPI documents.
"""
