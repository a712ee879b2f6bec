"""The input of a stream: a chain of manifests that grows while it is read."""
