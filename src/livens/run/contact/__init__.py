"""Rigid contact in a run: impacts and contact modes.

- `contact_dynamics`: Delassus matrix, impact law of Newton and Coulomb, search for open, sticking and sliding contacts.
- `rigid_contact`: the events that call it, at impacts, lift-off and changes of slip.
"""
