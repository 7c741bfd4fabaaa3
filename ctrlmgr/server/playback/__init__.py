"""Serves the API of a played recording: playback controls, and handlers that refuse or pretend writes."""
