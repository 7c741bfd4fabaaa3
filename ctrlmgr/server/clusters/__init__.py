"""Serves many clusters on the event loop and the address of one server, each below `/clusters/NAME`.

`cluster_router` passes a request to the cluster that its URL path names. `mounted_server` takes the place of the HTTP
server in such a cluster. `clusters_page` creates, lists, forks and deletes clusters.
"""
