"""``--cloud-provider=kwok``: nodes without machines on a real control plane, made from templates; kwok plays them."""
