"""The kinds of the group `apps`, ReplicationController and PodTemplate: they share the pod template."""
