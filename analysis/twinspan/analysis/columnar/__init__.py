"""Many recorded runs at once, as columns: what `verify` and `replay` do run by run, vectorised.

The numbers are those of the collector's own reckoning to the last digit: sums are rounded once
(`segments`), powers and thresholds come from the collector's functions, and so do the guards of
its machine, asked once for each combination that occurs (`guards`). What only few runs have is
left to the collector itself: see `ordinary` in `reckoning`.
"""
