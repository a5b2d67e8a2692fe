"""A dry start: predicts the start of a broker on its log dirs, by the rules of a release. It changes no file."""
