"""Plugins that are enabled only if `--enable-admission-plugins` names them."""
