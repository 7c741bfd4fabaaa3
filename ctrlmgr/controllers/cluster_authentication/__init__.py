"""Publishes this server's client authentication settings, which extension API servers then use too."""
