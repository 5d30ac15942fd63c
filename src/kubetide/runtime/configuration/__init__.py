"""What a process is configured with, from files, variables and flags."""
