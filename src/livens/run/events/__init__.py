"""Events: definition, detection and actions."""
