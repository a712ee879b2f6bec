"""Storage in a directory: objects, message logs, output and input as plain files."""
