"""The volumes of pods: their sources, their defaults, their mounts, and warnings about overlapping file paths."""
