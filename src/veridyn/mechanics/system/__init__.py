"""Where time passes: rules of steps, friction that holds, control laws, and machines integrated by them."""
