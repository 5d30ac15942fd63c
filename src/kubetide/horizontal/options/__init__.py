"""What goes beyond upstream, HPA by HPA and only where an annotation asks for it: one rule a file."""
