"""The output of DumpLogSegments' decoder switches, such as ``--offsets-decoder``, for a record."""
