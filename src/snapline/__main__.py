"""`python -m snapline`, and what `spark-submit` is given to run."""

from snapline.cli import main

if __name__ == "__main__":
    main()
