"""The API of a server that plays a recording: the playback controls, and the refusal or simulation of writes."""
