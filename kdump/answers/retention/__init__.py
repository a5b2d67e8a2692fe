"""What retention deletes: the facts of segments, the rules of each release, and the lines of the answer."""
