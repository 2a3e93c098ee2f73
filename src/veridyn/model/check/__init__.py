"""What must hold of machines and motions; and whether two machines are the same."""
