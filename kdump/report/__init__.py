"""The report on log dirs: one pass for all answers, a document of plain values, and a page made from it."""
