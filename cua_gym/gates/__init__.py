"""Gates that a task passes before its score counts: can it be done, and can it be cheated?"""
