"""Publishes how this server knows its clients, for servers that extend the API and ask the same."""
