"""Peers: other filters for unseen URLs, measured with the same items and the same server."""
