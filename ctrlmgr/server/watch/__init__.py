"""Serves watches: starts them, and sends each change, encoded once, to all watchers."""
