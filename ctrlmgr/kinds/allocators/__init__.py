"""Who gets which ClusterIP and node port.

`ranges` says what there is to give, `search` finds something free in it, `claims` are the objects in the log that
say who holds what. That nothing is held twice is the log's own guarantee: a claim is ADDED in the append that
stores its Service, under a name that is the address or port, and an ADDED of what exists is refused.
"""
