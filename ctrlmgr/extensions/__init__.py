"""CustomResourceDefinitions, the pure part: what a definition may say, and what its schemas make of a value.

Nothing here reads or writes a log, a file or a clock. The calls, in the order in which a server needs them:

Definitions as objects of a kind
    `set_defaults(definition)`                 Kubernetes' defaults of apiextensions.k8s.io/v1, in place
    `prepare_new(definition)`, `prepare_changed(definition, old)`
                                               what the strategy does before validation: status, storedVersions
    `validate_definition(new, old=None)`       every cause of the 422 for a create or an update, without metadata's
    `validate_status(new)`                     the same for the status subresource
    `warnings(new, old=None)`                  what is accepted, but answered with a `Warning` header
    `names.decide(definition, others)`         accepted names and the conditions NamesAccepted and Established
    `approval.condition(definition)`           the condition KubernetesAPIApprovalPolicyConformant, None for most groups
    `structural.violations(definition)`        the message of the condition NonStructuralSchema, empty for none

Definitions as kinds
    `parse(definition) -> Definition`          group, names, scope, conversion and `versions`, each a `Version`;
                                               cheap: a version's schema is compiled when it is first asked for
    `Version.schema -> Schema`                 the compiled schema, below
    `Version.status_schema -> Schema | None`   the schema of `.status` alone, for writes to the status subresource
    `Version.scale`                            the paths of the scale subresource, None without it
    `Version.columns`, `table_cells(version, object)`
                                               printer columns and their cells
    `Version.selectable`                       selectable fields: `.name` and `.read(object) -> str`
    `Version.deprecation`                      the text of the deprecation warning, None for versions that are not
    `openapi.definitions(definition, version, v2=...)`
                                               the OpenAPI definitions of the kind and its list, as Kubernetes publishes
                                               them, `$ref`s to ObjectMeta included; `Definitions` of `ctrlmgr.schema`
                                               reads them, so field management makes its shapes from the v3 form

A compiled schema (all of these take decoded JSON; what changes a value changes it in place)
    `Schema.read(object, strict) -> list[str]` what decoding does with a request or a stored object: prunes, drops nulls,
                                               coerces embedded metadata, fills in defaults; the paths of unknown fields
    `Schema.prune(object) -> list[str]`        only the first; the paths of the fields that went, sorted
    `Schema.drop_nulls(object)`                removes nulls that are neither nullable nor defaulted
    `Schema.default(object)`                   fills in defaults
    `Schema.coerce(object, drop_invalid)`      types of embedded metadata; FieldError or None, and unknown fields
    `Schema.validate(value, old=..., path=...) -> list[FieldError]`
                                               OpenAPI validation, with ratcheting where `old` is given
    `Schema.validate_resource(object, old=...) -> list[FieldError]`
                                               the whole of what a custom resource's strategy checks below its metadata:
                                               OpenAPI, scale, embedded metadata, duplicates in lists
    `Schema.rules`                             whether there are `x-kubernetes-validations`, which are kept, not evaluated
"""
