"""Scale-down: which nodes are unneeded, which go, and each deletion to its end."""
