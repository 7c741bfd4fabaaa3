"""The pure part of CustomResourceDefinitions: validates them, and applies their schemas to values.

No function of this package reads or writes a log, a file or a clock. A server calls these functions, in this order:

Functions for CustomResourceDefinitions as objects of a kind:

- `definition_defaults.set_defaults(definition)`: sets Kubernetes' defaults of apiextensions.k8s.io/v1, in place.
- `definition_defaults.prepare_new(definition)` and `.prepare_changed(definition, old)` change the status and its
  storedVersions before validation.
- `validation.definition_validation.validate_definition(new, old)` returns every cause of the 422 for a create (`old` is
  None) or an update. Of the CustomResourceDefinition's metadata, only the name and the approval annotation are
  validated.
- `validation.definition_validation.validate_status(new)` returns every cause of the 422 for a write to the status
  subresource.
- `validation.definition_warnings.warnings(new, old)` returns the warnings for the `Warning` headers about an accepted
  CustomResourceDefinition.
- `api_approval.condition(definition)` returns the condition KubernetesAPIApprovalPolicyConformant; None for most
  groups.
- `validation.structural_violations.condition(definition)` returns the condition NonStructuralSchema; None if the schema
  is structural.

Definitions as kinds:

- `definition.parse(definition)` returns a `Definition` with group, names, scope, conversion and `versions`, each of
  which is a `Version`. The call of `definition.parse` is cheap, because schemas are compiled on first use.
- `Definition.served`, `.storage` are the served versions by preference, and the stored version.
- `Definition.deprecation(version)` returns the deprecation warning; None if the version is not deprecated.
- `Version.schema`, `.raw_schema` are the compiled schema and its source.
- `Version.validate(object, old)` validates everything except metadata for a create or an update.
- `Version.validate_status(object, old)` validates a write to the status subresource.
- `Version.has_status`, `.scale` describe the subresources; the module `scale_paths` has the paths.
- `Version.columns`, `.cells(object, age)` are the printer columns and an object's cells.
- `Version.selectable` contains the selectable fields, each with `.name` and `.read(object) -> str`.

A compiled schema is a `compiled_schema.Schema`. All its methods take decoded JSON. Methods that change a value change
it in place:

- `read(object) -> (unknown, error)` decodes a request or a stored object. The method `read` prunes, drops nulls,
  coerces embedded metadata and sets defaults. `read` returns the paths of unknown fields in Kubernetes' order, and the
  FieldError with which the server refuses the request (400). A server reads stored objects with `drop_invalid=True`.
- `prune(object)`, `coerce(object)`, `default(object)` are the steps of `read`.
- `validate(value, old=..., path=...)` does the OpenAPI validation, with ratcheting if `old` is given.
- `rules` contains the compiled `x-kubernetes-validations`.

The schema does not cover the metadata of an object itself; the function
`shaping.embedded_metadata.read_metadata(value)` reads it.
"""
