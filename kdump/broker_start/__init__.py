"""A dry run of a broker's start on its log dirs, for each release; it changes nothing."""
