"""Types of the wire, checksums, compression, Java's text: what everything else is built of."""
