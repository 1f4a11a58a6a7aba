"""Random lives of jobs, asked of both databases side by side."""
