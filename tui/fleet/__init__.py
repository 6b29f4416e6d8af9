"""What is true now: settings, profiles, the pure reducer and the store. Nothing here talks to the world."""
