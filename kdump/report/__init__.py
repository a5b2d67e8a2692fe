"""The report on log dirs: one pass gathers all answers into a document of plain values, from which a page is made."""
