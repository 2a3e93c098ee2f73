"""``python -m veridyn`` is the command ``veridyn``."""

from veridyn.cli import main

if __name__ == "__main__":
    main()
