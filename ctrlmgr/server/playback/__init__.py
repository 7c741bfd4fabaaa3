"""The API of a server that plays a recording: playback controls, and the handlers that refuse or pretend writes."""
