"""Check functions by subject: pure, evidence in, verdict out.

Each docstring says what the check accepts and what it refuses. They know `cua_gym.grading.check`,
each other, and well-kept libraries; nothing else.
"""
