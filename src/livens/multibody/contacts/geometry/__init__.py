"""Signed distances of collision shapes and gap functions of shape pairs."""
