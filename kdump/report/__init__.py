"""The report on log dirs: one pass for all answers, a document of plain values, and an HTML page made from it."""
