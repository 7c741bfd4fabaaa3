"""Plays a recording: serves the recorded changes of a cluster to clients, in real time or at another speed.

The modules handle an event in this order: `loaded_recording` holds a whole recording, `timetable` determines the time
of each event, and `player` determines the events that have happened by now. `played_log` presents these events as an
event log, and `playback` advances the time. `pretended_writes` responds to clients' writes.
"""
