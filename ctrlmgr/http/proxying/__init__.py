"""A reverse proxy: passes requests on to other servers, and passes their responses back to the clients.

`upstream_address` is the address of a server, `upstream_pool` keeps connections to servers, and `upstream_connection`
is one connection. `hop_headers` contains the rules for headers. `reverse_proxy` passes a request or an upgrade on.
"""
