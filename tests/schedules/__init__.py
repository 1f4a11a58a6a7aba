"""All interleavings of short scripts, run for real and compared with the model."""
