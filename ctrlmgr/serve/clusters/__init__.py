"""Runs many clusters in one serving process: `ctrlmgr serve --clusters DIR`.

`cluster_directory` stores each cluster in a separate directory. `hosted_clusters` starts a cluster for its first
request, and stops the cluster when it is unused.
`hosted_front` takes the place of the front in a cluster, and `host_front` in the process that serves the clusters.
"""
