"""What else there is to tell unseen URLs from seen ones, measured on the same items and server."""
