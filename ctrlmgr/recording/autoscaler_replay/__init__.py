"""Repeats the decisions of recorded autoscaling controllers, as far as the recording contains their inputs."""
