"""Expressions: Kubernetes 1.36's Common Expression Language, from text to value.

Guarantees:
- An expression is accepted or refused as a real API server's compiler does, with its messages.
- An evaluation ends: it costs what it costs in Kubernetes, and stops at a limit; patterns match in linear time.
- Nothing here knows of admission or of custom resources: an `Environment` is told what expressions may name.

From text to value: `tokens`, `reading` (with `macros`), `checking` (with `types` and `declarations`), `evaluation`
(with `costs`); the functions are in `library`. `configured` is for expressions in files of settings.
"""

from __future__ import annotations
