"""What a task that went back alone must forget, and what others remember of it for that."""
