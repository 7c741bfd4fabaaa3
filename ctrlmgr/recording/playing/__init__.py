"""Plays a recording: serves the recorded cluster over time, at any speed, to clients that watch it.

In the order in which they handle an event: `loaded_recording` holds a whole recording, `timetable` says when each event
happened, `player` which have happened by now, `played_log` presents those as an event log, and `playback` lets time
pass. `pretended_writes` answers clients' writes.
"""
