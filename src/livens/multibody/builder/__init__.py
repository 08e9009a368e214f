"""Builder methods of `livens.Multibody`, grouped by bodies, joints, forces, control, contacts and flexible bodies."""
