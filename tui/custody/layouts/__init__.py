"""What programs write, recognised by names and sizes: which files are one checkpoint, and what it lacks."""
