"""What the ball bearing is made of: data, forces, where it starts, the system."""
