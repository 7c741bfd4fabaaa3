"""The kinds of the group `apps`, ReplicationController and PodTemplate: what they share is the pod template."""
