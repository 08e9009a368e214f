"""Assembled tier: one kernel per element type and per front class, evaluated over index maps in SIMD lanes.

- `assembly`, `element_kernels`, `residual_gather`, `indexed_emitter`: kernels of elements, and their contributions.
- `nested_dissection`, `symbolic_analysis`, `ordering_selection`, `front_class`: order of elimination and equal fronts.
- `numeric_factorization`: multifrontal LU with front classes; `multifrontal`, `dense_analysis`: with dense fronts.
- `lane_assignment`, `cache_blocking`, `workspace_pool`, `thread_team`, `parallel_ops`: lanes, cache, memory, threads.
- `time_loop`, `stepper`, `variable_steps`, `fallback_solver`: steps.
"""

from livens.engine.assembled import compile_unit as compile_unit  # registers the compile unit before the first call
