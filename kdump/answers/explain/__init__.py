"""The question ``explain``: why a consumer receives the record of an offset or not, with evidence from the files."""
