"""The docs: outputs of commands, pages and tables that are made from the code, and pictures."""
