"""The verbs of `rgt` without a screen, one file per group; each returns an exit code of the one table."""
