"""Everything that segments hold, written by Spark: Parquet and more, damage apart, every byte accounted for."""
