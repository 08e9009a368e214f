"""Benchmarks of robots: files of other projects, and control in the loop."""
