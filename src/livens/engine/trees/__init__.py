"""Tree tier: steps of `lie-em` on spanning trees, with as many unknowns as degrees of freedom."""
