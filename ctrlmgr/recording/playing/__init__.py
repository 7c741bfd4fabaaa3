"""Plays a recording: serves the recorded cluster over time, at any speed, to clients that watch the cluster.

The modules, in the order in which they handle an event: `loaded_recording` holds a whole recording, `timetable`
determines the time of each event, and `player` the events that have happened by now. `played_log` presents these events
as an event log, and `playback` advances the time. `pretended_writes` answers clients' writes.
"""
