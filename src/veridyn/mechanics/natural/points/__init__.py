"""Points and unit vectors laid out from the bodies and joints of a machine."""
