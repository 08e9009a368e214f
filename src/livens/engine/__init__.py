"""From the equations of one step to native code and a loop over time. Knows nothing of mechanics."""
