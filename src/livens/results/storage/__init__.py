"""Storage of results: HDF5, Zarr, journal and checksums."""
