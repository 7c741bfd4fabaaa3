"""Publishes this server's client authentication settings, because extension API servers also use these settings."""
