"""Results: trajectory, metadata and statistics of runs, in memory and in files.

- `result`, `ensemble`: results of single runs and of ensembles.
- `record`: metadata and conservation summary; `checkpoint`: complete state of a run.
- `recorder`, `background`: rows of a run while it goes on.
- `dense_output`: states between stored rows.
- `storage`: files in HDF5 and Zarr.
"""
