"""Rigid contact in a run: impacts and contact modes.

- `contact_equations`: gaps, relative velocities, Delassus matrix with joints, forces and guards as functions.
- `contact_dynamics`: sequential impacts, search for open, sticking and sliding contacts.
- `rigid_contact`: the events that call it, at impacts, lift-off and changes of slip.
"""
