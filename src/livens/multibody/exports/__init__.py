"""Export of mechanisms to file formats of other codes."""
