"""Comparisons of numsim's accumulation modes and casts with other projects; see ../check_peers."""
