"""Builder methods of `livens.Multibody`, grouped by bodies, joints, constraints, couplings, forces, control, contacts,
flexible bodies and robot description files."""
