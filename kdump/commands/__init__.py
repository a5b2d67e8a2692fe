"""One module per subcommand, imported when it is called. It has the options and help; other packages do the work."""
