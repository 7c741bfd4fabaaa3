"""Parses, checks and evaluates expressions in the Common Expression Language of Kubernetes 1.36.

Guarantees:

- The compiler accepts and refuses the same expressions as Kubernetes' API server, with the same error messages.
- Every evaluation ends, because its cost is limited, as in Kubernetes, and patterns match in linear time.
- The package is independent of admission and custom resources; an `Environment` declares the variables.

The steps of compilation and evaluation are `expression_lexer`, `expression_parser` (with `macros`), `type_checker`
(with `types` and `declarations`) and `evaluation` (with `costs`). The package `library` contains the functions.
`configured_expressions` contains functions for expressions in configuration files.
"""

from __future__ import annotations
