"""Expressions: parses, checks and evaluates the Common Expression Language of Kubernetes 1.36.

Guarantees:

- The compiler accepts and refuses the same expressions as a real API server, with its messages.
- Every evaluation ends: costs are those of Kubernetes and are limited, and patterns match in linear time.
- The package is independent of admission and custom resources; an `Environment` declares the variables.

The steps are `expression_lexer`, `expression_parser` (with `macros`), `type_checker` (with `types` and `declarations`)
and `evaluation` (with `costs`). The functions are in `library`. `configured_expressions` is for expressions in
configuration files.
"""

from __future__ import annotations
