"""The report on log dirs: a document of the answers of commands, most from one pass, and its page, texts and JSON."""
