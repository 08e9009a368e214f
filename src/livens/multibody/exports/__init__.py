"""Mechanisms as files of other codes."""
