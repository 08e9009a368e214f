"""What the ball bearing is made of: data, Hertz' contact, forces, where it starts, the system."""
