"""Questions to the log: what was true at any revision, who changed it, and why.

Everything here reads, through the views of `ctrlmgr.eventlog.views`; nothing writes or could. `database` asks in SQL,
`questions` are the ready-made ones, `past` goes back in time, `causes` follows what led to what, `differences` and
`blame` compare. What it finds are plain values; how they look is the command line's affair.
"""
