"""Why a pod waits, why a node stays or goes, what a group is good for; asked on demand."""
