"""HPAs, pods and samples as the loop sees them: columns and small views."""
