"""What a developer runs after an edit: it compiles the kernel and writes tables from the code."""
