"""The HorizontalPodAutoscaler controller: sets the replicas of a workload by what is measured of it."""
