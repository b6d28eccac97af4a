"""Programs that run the package against tests of diffusers, and what they share."""
