"""Code generation: LLVM IR emitters, kernels of a step, JIT compilation and code cache."""
