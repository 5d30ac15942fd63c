"""What HPAs, pods and samples are to the loop, in columns and small views."""
