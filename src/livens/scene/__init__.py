"""Scene of a model: visual shapes, meshes and their poses, for plots and the viewer."""
