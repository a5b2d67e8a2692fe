"""The docs: outputs that are run, pages and tables that are made from the code, the pictures."""
