"""Whether a filter may be believed: innovations against their stated size, sensors that are wrong, and what no sensor shows."""
