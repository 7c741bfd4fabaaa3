"""Publishes this server's client authentication settings for extension API servers, which use the same ones."""
