"""Which objects the API server refuses, and with which words."""
