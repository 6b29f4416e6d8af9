"""Evidence to incident to remedy: pure readers of logs and figures, and a catalog with a file a class."""
