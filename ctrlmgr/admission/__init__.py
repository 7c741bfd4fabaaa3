"""Admission: plugins and webhooks that change or refuse a write, before it reaches the log.

Start reading here: `admission_plugin` defines a plugin, and `admission_chain` calls plugins in Kubernetes' order.
`plugin_registry` lists them with their defaults, and `admission_configuration` reads `--admission-control-config-file`.
Each plugin is a module of `plugins`; the larger ones have packages of their own: `podsecurity`, `quota`, `webhooks`.

Plugins decide on the given state (`Attributes.view`) and never wait themselves. A plugin that needs an answer from
elsewhere yields a command to the engine's driver, so that other requests continue.
"""
