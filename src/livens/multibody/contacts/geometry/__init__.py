"""Where bodies touch: distances from surfaces, one shape or pair of shapes in each file."""
