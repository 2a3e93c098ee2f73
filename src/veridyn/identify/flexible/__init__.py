"""Stiffness of joints from encoders at the motor and encoders or inertial sensors at the link, with the delay between the two."""
