"""Azure: virtual machine scale sets, uniform and flexible."""
