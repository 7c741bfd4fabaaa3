"""Serves watches: starts watches, and sends each change, encoded once, to all watchers."""
