"""The cases of the Cluster port's battery, by subject; ``testing.cluster_battery`` collects them."""
