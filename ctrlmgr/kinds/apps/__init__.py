"""The kinds of the group `apps`, and ReplicationController and PodTemplate, which also contain a pod template."""
