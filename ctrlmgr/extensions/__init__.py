"""CustomResourceDefinitions, the pure part: what a definition may say, and what its schemas make of a value.

Nothing here reads or writes a log, a file or a clock. The calls, in the order in which a server needs them:

Definitions as objects of a kind
    `defaults.set_defaults(definition)`        Kubernetes' defaults of apiextensions.k8s.io/v1, in place
    `defaults.prepare_new(definition)`, `defaults.prepare_changed(definition, old)`
                                               what the strategy does before validation: status, storedVersions
    `validation.validate_definition(new, old)` every cause of the 422 for a create (`old` None) or an update, but
                                               those of metadata other than the name's and the approval annotation's
    `validation.validate_status(new)`          the same for the status subresource
    `validation.warnings(new, old)`            what is accepted, but answered with a `Warning` header
    `approval.condition(definition)`           the condition KubernetesAPIApprovalPolicyConformant, None for most groups
    `validation.structure.condition(definition)`
                                               the condition NonStructuralSchema, None for a structural one

Definitions as kinds
    `definition.parse(definition)`             a `Definition`: group, names, scope, conversion and `versions`, each a
                                               `Version`; cheap, schemas are compiled when they are first asked for
    `Definition.served`, `.storage`            versions by preference; the one that is stored
    `Definition.deprecation(version)`          the text of the `Warning`, None for versions that are not deprecated
    `Version.schema`, `.raw_schema`            the compiled schema, below, and what it is made from
    `Version.validate(object, old)`            all that a strategy checks below the metadata, on creation and update
    `Version.validate_status(object, old)`     the same for writes to the status subresource
    `Version.has_status`, `.scale`             subresources; `scale` has the paths
    `Version.columns`, `.cells(object, age)`   printer columns and an object's cells
    `Version.selectable`                       selectable fields: `.name` and `.read(object) -> str`

A compiled schema (`compiled.Schema`; all calls take decoded JSON, and what changes a value changes it in place)
    `read(object) -> (unknown, error)`         what decoding does to a request or a stored object: prunes, drops nulls,
                                               coerces embedded metadata, fills in defaults; the paths of unknown fields
                                               in Kubernetes' order, and the FieldError that makes the request a 400.
                                               For stored objects with `drop_invalid=True`.
    `prune(object)`, `coerce(object)`, `default(object)`
                                               its parts
    `validate(value, old=..., path=...)`       OpenAPI validation, with ratcheting where `old` is given
    `rules`                                    the `x-kubernetes-validations`, compiled

The metadata of an object itself is not the schema's: `shaping.embedded.read_metadata(value)` brings it into its form.
"""
