"""One module per subcommand. Running the subcommand imports its module, which has the options and the help."""
