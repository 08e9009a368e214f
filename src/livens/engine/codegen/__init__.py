"""Code generation: LLVM IR emitters, kernels of a step, JIT compilation and code cache.

- `ir_emitter`, `vector_emitter`: emitters of LLVM IR, for one number or one SIMD vector per value.
- `step_kernels`: kernels of residual, final state, initial guess and error estimate.
- `newton_kernels`, `unrolled_lu`: Newton correction with an LU factorization as straight-line code.
- `external_force_kernels`: evaluation of a compiled force, before a kernel of the step.
- `predictor_kernel`: predictor of the unknowns, for the ensemble and for large steps.
- `roundoff_bounds`: running error analysis of the residual as code.
- `initial_state_kernel`: initial states of many members.
- `explicit_simd`: explicit steps of one trajectory in SIMD lanes.
- `instruction_schedule`: order of instructions that keeps few values alive.
- `jit`, `code_cache`, `fingerprint`: compilation, machine code on disk, and the key of the cache.
"""
