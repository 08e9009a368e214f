"""Ball and roller bearings: dimensions, contact forces, initial equilibrium, system and visual geometry."""
