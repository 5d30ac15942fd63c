"""Scale-down: which nodes are unneeded, which are removed, and each deletion to its end."""
