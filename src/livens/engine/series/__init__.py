"""Taylor series in lanes: operations that are alike are computed side by side, as entries of vectors."""
