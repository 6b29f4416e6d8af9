"""Control planes: one module per platform, and what every one of them must answer."""
