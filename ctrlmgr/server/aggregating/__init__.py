"""Forwards requests to the extension servers that serve the requested API versions, as kube-aggregator does.

APIServices assign versions of API groups to extension servers. `extension_servers` finds and resolves these servers,
`proxy_handler` forwards a request, and `user_headers` creates the headers that name the request's user.
"""
