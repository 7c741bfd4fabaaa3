"""Passes requests for API versions that extension servers serve on to these servers, as kube-aggregator does.

APIServices assign versions of API groups to extension servers. `extension_servers` finds and resolves these servers,
`proxy_handler` passes a request on, and `user_headers` creates the headers that tell the other server the request's
user.
"""
