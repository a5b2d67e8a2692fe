"""Work that several threads or processes share: the engine for chunks, and what several workers cost and gain."""
