"""Stiffness of joints from encoders at the motor and at the link, with the delay between the two."""
