"""Base classes of schemes: registry, traits, step equations and the catalogue."""
