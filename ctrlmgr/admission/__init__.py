"""Admission: who else has a say in a write, after its kind's own rules and before the log.

In the order a reader meets them: `plugin` is what a plugin is, `chain` calls plugins in Kubernetes' order, `registry`
lists them and says which are on, `configuration` reads `--admission-control-config-file`. Each plugin is a module of
`plugins`; the larger ones have packages of their own: `podsecurity`, `quota`, `webhooks`. `declared` is for plugins
that others bring.

Plugins decide on the state they are given (`Attributes.view`) and never wait on their own: one that needs an answer
from elsewhere yields a command to the engine's driver, so that no other request is held up.
"""
