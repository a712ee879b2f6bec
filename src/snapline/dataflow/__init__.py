"""What is computed: operators, the logical graph, and how it becomes tasks and channels."""
