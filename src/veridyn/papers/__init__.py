"""The five papers, each with its machine, its simulator, its study and the page of its report; no other room imports them."""
