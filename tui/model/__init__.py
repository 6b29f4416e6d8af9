"""The frozen types all rooms speak in. This room knows no other, and imports only the standard library."""
