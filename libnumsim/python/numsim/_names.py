"""Words about unknown names in errors."""

from numsim import _core


def did_you_mean(name, known):
    """Returns "; did you mean NAME?" with the nearest of the known names, or "" if none is near."""
    nearest = _core.nearest_name(name, list(known))
    return f"; did you mean {nearest}?" if nearest else ""
