"""What the decoder switches of DumpLogSegments (``--offsets-decoder`` and its like) print of a record."""
