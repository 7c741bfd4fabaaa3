"""Custom kinds: creates the engine's `Kind`s from CustomResourceDefinitions.

A definition is processed in this order: `registry` updates the kinds of a server, and `kind` creates each `Kind`. A
kind's `codec` reads and writes its objects, `shape` describes ownership and merging of fields, and `strategy` handles
writes. `reading` and `webhook` convert between versions, `scaling` is for the scale subresource, and `openapi` for
OpenAPI documents.
"""
