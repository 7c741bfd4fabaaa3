"""Admission: plugins and webhooks that change or refuse a write, before it reaches the log.

Start reading here: `admission_plugin` defines a plugin, and `admission_chain` calls plugins in Kubernetes' order.
`plugin_registry` lists all plugins with their defaults, and `admission_configuration` reads
`--admission-control-config-file`. Each plugin is a module of the package `plugins`; the larger plugins also have
packages of their own: `podsecurity`, `quota`, `webhooks`.

Plugins decide by the state that they are given (`Attributes.view`) and never block. A plugin that needs a response from
another process yields a command to the engine's driver, so that other requests continue meanwhile.
"""
