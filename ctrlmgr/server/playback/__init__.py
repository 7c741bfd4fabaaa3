"""The API of a server that plays a recording: playback controls, and refused or pretended writes."""
