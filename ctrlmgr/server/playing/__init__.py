"""The API of a server that plays a recording: the playback controls, and writes that have no effect."""
