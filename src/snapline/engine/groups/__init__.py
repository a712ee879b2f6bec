"""Parts of a task's state whose groups of rows are stored as objects of their own."""
