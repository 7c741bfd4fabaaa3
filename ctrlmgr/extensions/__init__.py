"""CustomResourceDefinitions, the pure part: validates definitions, and applies their schemas to values.

Nothing here reads or writes a log, a file or a clock. The calls, in the order in which a server needs them:

Definitions as objects of a kind:

- `defaults.set_defaults(definition)`: Kubernetes' defaults of apiextensions.k8s.io/v1, in place.
- `defaults.prepare_new(definition)`, `defaults.prepare_changed(definition, old)`: the strategy's changes before
  validation, to the status and to storedVersions.
- `validation.validate_definition(new, old)`: every cause of the 422 for a create (`old` is None) or an update, except
  those of metadata other than the name and the approval annotation.
- `validation.validate_status(new)`: the same for the status subresource.
- `validation.warnings(new, old)`: the texts of `Warning` headers for accepted definitions.
- `approval.condition(definition)`: the condition KubernetesAPIApprovalPolicyConformant, None for most groups.
- `validation.structure.condition(definition)`: the condition NonStructuralSchema, None for a structural schema.

Definitions as kinds:

- `definition.parse(definition)`: a `Definition` with group, names, scope, conversion and `versions`, each a `Version`.
  It is cheap, because schemas are compiled on first use.
- `Definition.served`, `.storage`: the served versions by preference, and the stored version.
- `Definition.deprecation(version)`: the text of the `Warning`, None for versions that are not deprecated.
- `Version.schema`, `.raw_schema`: the compiled schema, see below, and its source.
- `Version.validate(object, old)`: all that a strategy validates besides metadata, on creation and update.
- `Version.validate_status(object, old)`: the same for writes to the status subresource.
- `Version.has_status`, `.scale`: the subresources; `scale_paths` has the paths.
- `Version.columns`, `.cells(object, age)`: the printer columns and an object's cells.
- `Version.selectable`: the selectable fields, each with `.name` and `.read(object) -> str`.

A compiled schema is a `compiled_schema.Schema`. All calls take decoded JSON, and changes are made in place:

- `read(object) -> (unknown, error)`: decodes a request or a stored object. It prunes, drops nulls, coerces embedded
  metadata and sets defaults. It returns the paths of unknown fields in Kubernetes' order, and the FieldError that
  makes the request a 400. Stored objects are read with `drop_invalid=True`.
- `prune(object)`, `coerce(object)`, `default(object)`: the steps of `read`.
- `validate(value, old=..., path=...)`: OpenAPI validation, with ratcheting if `old` is given.
- `rules`: the `x-kubernetes-validations`, compiled.

The schema does not cover the metadata of an object itself: `shaping.embedded.read_metadata(value)` reads it.
"""
