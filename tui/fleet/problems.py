"""Problems with the operator's own files, under the name the fleet's readers know them by."""

from tui.model.problems import BAD, CAP_BYTES, WARNING, parse_toml, problem, read_user_file

__all__ = ["BAD", "CAP_BYTES", "WARNING", "parse_toml", "problem", "read_user_file"]
