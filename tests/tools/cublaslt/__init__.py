"""How cuBLASLt plans products and splits their sums; see ../cublaslt_plans.py."""
