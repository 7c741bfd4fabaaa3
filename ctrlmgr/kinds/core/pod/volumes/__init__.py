"""The volumes of pods: sources, defaults, mounts, and files in each other's place."""
