"""Ensembles: members, blocks and workers; members in SIMD lanes, or one after another on a tree (`member_runs`)."""
