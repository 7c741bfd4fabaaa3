"""Runs many clusters in one serving process: `ctrlmgr serve --clusters DIR`.

`cluster_directory` stores each cluster in a directory of its own. `hosted_clusters` wakes a cluster and lets it sleep.
`hosted_front` takes the place of the front in a cluster, and `host_front` in the process that serves the clusters.
"""
