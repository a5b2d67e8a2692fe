"""One module per subcommand, imported when it is called: its options, its help, and the calls that answer it."""
