"""Publishes this server's client authentication settings, which extension API servers use, too."""
