"""Passes requests for API versions of extension servers on to these servers, as kube-aggregator does.

APIServices assign versions of API groups to extension servers. `extension_servers` finds and resolves these servers,
`proxy_handler` answers a client's request, and `user_headers` creates the headers with which the other server gets the
request's user.
"""
