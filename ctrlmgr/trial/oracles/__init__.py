"""The oracles: functions that read the kept log of a run, and return findings."""
