"""Other filters for unseen URLs, measured with the same items and server."""
