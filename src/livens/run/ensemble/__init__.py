"""Ensembles: members, blocks and workers."""
