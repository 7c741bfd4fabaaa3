"""Playing a recording: a cluster that becomes again what it was, as fast as one likes, for clients that watch it.

In the order in which an event travels: `tape` holds a whole recording, `timetable` says when each of its events
happened, `player` which of them have happened by now, `played_log` shows those as an event log, and `playback` lets
time pass. `pretending` answers clients who would write.
"""
