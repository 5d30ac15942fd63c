"""Where the server is, and how to be known to it."""
