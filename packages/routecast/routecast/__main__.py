"""``python -m routecast``."""

from routecast.cli import main

if __name__ == "__main__":
    main()
