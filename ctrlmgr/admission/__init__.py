"""Admission: plugins and webhooks that change or refuse a write, before it reaches the log.

Start reading here: `admission_plugin` defines a plugin, and `admission_chain` calls plugins in Kubernetes' order.
`plugin_registry` lists all plugins with their defaults, and `admission_configuration` reads
`--admission-control-config-file`. Each plugin is a module of the package `plugins`. The packages `podsecurity`, `quota`
and `webhooks` contain further code of the larger plugins.

Plugins decide on the state in `Attributes.view`, and never block. A plugin that needs a response from another process
yields a command to the engine's driver, so that other requests continue meanwhile.
"""
