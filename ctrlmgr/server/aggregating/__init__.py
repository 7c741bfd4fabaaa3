"""Passes requests for versions of groups that APIServices assign to other servers on to them, as kube-aggregator does.

`extension_servers` knows these servers and how to reach them, `passing_on` answers a client's request, and
`user_headers` names its user to the other server.
"""
