"""The volumes of pods: sources, defaults, mounts, and overlapping file paths."""
