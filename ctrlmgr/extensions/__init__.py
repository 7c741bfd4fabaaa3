"""CustomResourceDefinitions, the pure part: validates definitions, and applies their schemas to values.

No function of this package reads or writes a log, a file or a clock. The following functions are listed in the order in
which a server calls them:

Definitions as objects of a kind:

- `definition_defaults.set_defaults(definition)`: sets Kubernetes' defaults of apiextensions.k8s.io/v1, in place.
- `definition_defaults.prepare_new(definition)` and `.prepare_changed(definition, old)`: change status and
  storedVersions before validation, as the strategy does.
- `validation.definition_validation.validate_definition(new, old)`: every cause of the 422 for a create (`old` is None)
  or an update. Of the metadata, only the name and the approval annotation are validated.
- `validation.definition_validation.validate_status(new)`: every cause of the 422 for a write to the status subresource.
- `validation.definition_warnings.warnings(new, old)`: the texts of `Warning` headers for accepted definitions.
- `api_approval.condition(definition)`: the condition KubernetesAPIApprovalPolicyConformant, None for most groups.
- `validation.structural_violations.condition(definition)`: the condition NonStructuralSchema, None for a structural
  schema.

Definitions as kinds:

- `definition.parse(definition)`: a `Definition` with group, names, scope, conversion and `versions`, each a `Version`.
  The call is cheap, because schemas are compiled on first use.
- `Definition.served`, `.storage`: the served versions by preference, and the stored version.
- `Definition.deprecation(version)`: the text of the `Warning`, None for versions that are not deprecated.
- `Version.schema`, `.raw_schema`: the compiled schema, see below, and its source.
- `Version.validate(object, old)`: all validation of a create or update by the strategy, except that of metadata.
- `Version.validate_status(object, old)`: the validation of a write to the status subresource.
- `Version.has_status`, `.scale`: the subresources; `scale_paths` has the paths.
- `Version.columns`, `.cells(object, age)`: the printer columns and an object's cells.
- `Version.selectable`: the selectable fields, each with `.name` and `.read(object) -> str`.

A compiled schema is a `compiled_schema.Schema`. All calls take decoded JSON, and changes are made in place:

- `read(object) -> (unknown, error)`: decodes a request or a stored object. The call prunes, drops nulls, coerces
  embedded metadata and sets defaults. `read` returns the paths of unknown fields in Kubernetes' order, and the
  FieldError that makes the request a 400. Stored objects are read with `drop_invalid=True`.
- `prune(object)`, `coerce(object)`, `default(object)`: the steps of `read`.
- `validate(value, old=..., path=...)`: OpenAPI validation, with ratcheting if `old` is given.
- `rules`: the `x-kubernetes-validations`, compiled.

The schema does not cover the metadata of an object itself: `shaping.embedded_metadata.read_metadata(value)` reads it.
"""
