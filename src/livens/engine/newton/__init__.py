"""Newton iteration, compiled time loops, step-size control and static pivot order."""
