"""What two replicas of a partition hold differently: equal bytes are compared, the rest record by record."""
