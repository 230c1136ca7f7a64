"""Code-fix jobs: sandboxed repository tests, patches, the fix loop, SWE-bench shapes."""
