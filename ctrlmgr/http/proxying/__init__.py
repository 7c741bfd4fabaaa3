"""A reverse proxy: passes requests on to other servers, and their answers back.

`upstream_address` names a server, `upstream_pool` keeps connections to it, and `upstream_connection` is one of them.
`hop_headers` has the rules for headers. `reverse_proxy` passes a request or an upgrade on.
"""
