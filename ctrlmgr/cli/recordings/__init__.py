"""Commands for recordings: record, import, replay, play."""
