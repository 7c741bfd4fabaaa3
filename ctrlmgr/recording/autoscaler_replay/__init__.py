"""Repeats decisions of recorded controllers with our controllers, if the recording contains the inputs."""
