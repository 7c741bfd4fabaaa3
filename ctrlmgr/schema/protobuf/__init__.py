"""Reads and writes Kubernetes' protobuf format; Kubernetes' `.proto` files define the structure of the messages."""
