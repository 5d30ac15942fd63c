"""Builds Kubernetes' own programs from pinned Go modules, and finds what was built.

The embedded cluster is tested beside the real one: kubectl, a client-go program, and a control
plane (etcd, kube-apiserver, kube-scheduler, kube-controller-manager). ``go/go.mod`` and
``go/go.sum`` pin every source. Needs Python's standard library only.
"""
